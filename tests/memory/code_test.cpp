// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/code.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "accrue/memory/resident.h"
#include "tests/support/files.h"

namespace accrue::memory {
namespace {

constexpr size_t kBytes = size_t{1} << 20;

/// A file of 'a's, mapped as the code of a library is.
class Mapped {
 public:
  Mapped() {
    const std::filesystem::path path = test::ProgramFolder::path() / "code";
    std::ofstream(path) << std::string(kBytes, 'a');
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    void* const start = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    ::close(file);
    start_ = start == MAP_FAILED ? nullptr : static_cast<char*>(start);
  }
  ~Mapped() { ::munmap(start_, kBytes); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  char* start() const { return start_; }
  /// False where a folder of temporary files may not hold code.
  bool become_code() { return ::mprotect(start_, kBytes, PROT_READ | PROT_EXEC) == 0; }
  int64_t count(char byte) const { return std::count(start_, start_ + kBytes, byte); }

 private:
  char* start_ = nullptr;
};

TEST(ReleaseCode, GivesBackPagesThatAreReadAgain) {
  Mapped mapped;
  ASSERT_NE(mapped.start(), nullptr);
  if (!mapped.become_code()) GTEST_SKIP() << "no code from files here";
  EXPECT_EQ(mapped.count('a'), static_cast<int64_t>(kBytes));
  const Resident before = read_resident();
  if (before.all == 0) GTEST_SKIP() << "this system does not tell";
  const int64_t released = release_code();
  EXPECT_GE(released, static_cast<int64_t>(kBytes));
  EXPECT_LE(read_resident().files, before.files - static_cast<int64_t>(kBytes) / 2)
      << "the code that runs here is back at once, the rest is not";
  EXPECT_EQ(mapped.count('a'), static_cast<int64_t>(kBytes));
}

TEST(ReleaseCode, LeavesWhatWasWrittenTo) {
  Mapped mapped;
  ASSERT_NE(mapped.start(), nullptr);
  mapped.start()[kBytes / 2] = 'b';  // as a debugger's breakpoint
  if (!mapped.become_code()) GTEST_SKIP() << "no code from files here";
  release_code();
  EXPECT_EQ(mapped.count('b'), 1);
}

TEST(ReleaseCode, LeavesOtherMappingsAlone) {
  Mapped mapped;
  ASSERT_NE(mapped.start(), nullptr);
  std::fill_n(mapped.start(), kBytes, 'c');
  release_code();
  EXPECT_EQ(mapped.count('c'), static_cast<int64_t>(kBytes));
}

}  // namespace
}  // namespace accrue::memory
