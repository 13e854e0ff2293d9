// SPDX-License-Identifier: Apache-2.0
#include "accrue/formats/atomic_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/errors.h"
#include "tests/support/files.h"

namespace accrue {
namespace {

int64_t count_files(const std::string& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

TEST(AtomicFile, AppearsWholeAndReplaces) {
  const std::string folder = test::fresh_folder();
  const std::string path = test::write_file(folder + "/f", "old");
  AtomicFile file(path);
  file.write("new ");
  file.write("text");
  EXPECT_EQ(test::read_file(path), "old");
  file.commit();
  EXPECT_EQ(test::read_file(path), "new text");
  EXPECT_EQ(count_files(folder), 1);
}

TEST(AtomicFile, LeavesNothingBehindWithoutCommit) {
  const std::string folder = test::fresh_folder();
  AtomicFile(folder + "/f").write("half");
  EXPECT_EQ(count_files(folder), 0);
}

TEST(AtomicFile, FailuresNamePathAndReason) {
  EXPECT_ERROR(
      write_file_atomically("/no/such/folder/f", "x"), StateError,
      "/no/such/folder/f: cannot be written: No such file or directory; check free space and permissions");
  const std::string folder = test::fresh_folder();
  std::filesystem::create_directories(folder + "/f/g");
  EXPECT_ERROR(write_file_atomically(folder + "/f", "x"), StateError,
               folder + "/f: cannot be written: Is a directory; check free space and permissions");
  EXPECT_EQ(count_files(folder), 1);
  EXPECT_ERROR(
      sync_folder(folder + "/none"), StateError,
      folder + "/none: cannot be written: No such file or directory; check free space and permissions");
}

TEST(AtomicFile, AFullDiskIsAnErrorWithItsReason) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  const std::string folder = test::fresh_folder();
  const std::string path = folder + "/f";
  std::filesystem::create_symlink("/dev/full", path + ".tmp" + std::to_string(::getpid()));
  EXPECT_ERROR(write_file_atomically(path, "x"), StateError,
               path + ": cannot be written: No space left on device; check free space and permissions");
  EXPECT_EQ(count_files(folder), 0);
}

}  // namespace
}  // namespace accrue
