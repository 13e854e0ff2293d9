// SPDX-License-Identifier: Apache-2.0
#include "tests/support/files.h"

#include <cstdlib>

namespace accrue::test {
namespace {

namespace fs = std::filesystem;

TEST(FreshFolder, IsThereAndEmptyEachTime) {
  const std::string folder = fresh_folder();
  write_file(folder + "/f", "x");
  EXPECT_TRUE(fs::is_empty(fresh_folder()));
  EXPECT_EQ(fresh_folder(), folder);
}

TEST(FreshFolder, GoesWhenTheTestProgramEnds) {
  const std::string folder = fresh_folder();
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  const std::string command = "TEST_TMPDIR='" + folder + "' '" + program +
                              "' --gtest_filter=FreshFolder.IsThereAndEmptyEachTime > /dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_TRUE(fs::is_empty(folder));
}

}  // namespace
}  // namespace accrue::test
