// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <fstream>
#include <sstream>
#include <string>

#include "accrue/memory/resident.h"

namespace accrue::memory {
namespace {

std::string entry(const std::string& rights, int inode, const std::string& lines) {
  return "7f0000-7f4000 " + rights + " 00001000 08:01 " + std::to_string(inode) +
         "   /lib/a (deleted)\\012b.so\n" + "Size: 16 kB\n" + lines +
         "AnonHugePages: 0 kB\nVmFlags: rd ex mr\n";
}

std::vector<CleanCode> found(const std::string& text) {
  std::istringstream smaps(text);
  return clean_code(smaps);
}

const std::string kClean = "Rss: 12 kB\nAnonymous: 0 kB\nSwap: 0 kB\n";

TEST(CleanCode, IsOfAFileExecutableAndNotWrittenTo) {
  const std::vector<CleanCode> all =
      found(entry("rw-p", 7, kClean) + entry("r-xp", 7, kClean) +
            "7f8000-7f9000 r-xp 00000000 00:00 9 /c.so\nSwap: 0 kB\nAnonymous: 0 kB\nRss: 4 kB\n");
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].start, 0x7f0000);
  EXPECT_EQ(all[0].end, 0x7f4000);
  EXPECT_EQ(all[0].resident, 12 * 1024);
  EXPECT_EQ(all[1].start, 0x7f8000);
}

TEST(CleanCode, LeavesOutWhatIsNot) {
  for (const char* rights : {"r--p", "rwxp", "r-xs", "---p"})
    EXPECT_TRUE(found(entry(rights, 7, kClean)).empty());
  EXPECT_TRUE(found(entry("r-xp", 0, kClean)).empty()) << "of no file";
  for (const char* lines :
       {"Rss: 12 kB\nAnonymous: 4 kB\nSwap: 0 kB\n", "Rss: 12 kB\nAnonymous: 0 kB\nSwap: 4 kB\n",
        "Rss: 0 kB\nAnonymous: 0 kB\nSwap: 0 kB\n", "Rss: 12 kB\nSwap: 0 kB\n",
        "Rss: 12 kB\nAnonymous: 0 kB\n", "Anonymous: 0 kB\nSwap: 0 kB\n", "Rss: 12"}) {
    EXPECT_TRUE(found(entry("r-xp", 7, lines)).empty()) << lines;
  }
  EXPECT_TRUE(found("").empty());
  EXPECT_TRUE(found("Rss: 12 kB\nAnonymous: 0 kB\nSwap: 0 kB\n").empty());
}

/// A page of code of this program that holds nothing else.
alignas(4096) __attribute__((section(".text.patched"))) const unsigned char patched[4096] = {1};

TEST(ReleaseCode, GivesBackCodeThatRunsOn) {
  if (!std::ifstream("/proc/self/smaps") || read_resident().all == 0)
    GTEST_SKIP() << "this system does not tell";
  const int64_t before = read_resident().files;
  const int64_t released = release_code();
  EXPECT_GT(released, int64_t{256} << 10) << "of this program and the C++ library";
  EXPECT_LT(read_resident().files, before);
}

TEST(ReleaseCode, LeavesWhatWasWrittenTo) {
  auto* const page = const_cast<unsigned char*>(patched);
  if (::mprotect(page, sizeof patched, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
    GTEST_SKIP() << "code stays code";
  const_cast<volatile unsigned char*>(page)[7] = 9;  // as a debugger's breakpoint
  ASSERT_EQ(::mprotect(page, sizeof patched, PROT_READ | PROT_EXEC), 0);
  release_code();
  EXPECT_EQ(const_cast<volatile unsigned char*>(page)[7], 9);
}

}  // namespace
}  // namespace accrue::memory
