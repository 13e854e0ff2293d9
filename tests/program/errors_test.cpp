// SPDX-License-Identifier: Apache-2.0
// Runs every row of bad_commands.h in a folder of its own.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "tests/program/bad_commands.h"
#include "tests/support/files.h"

namespace accrue::test {
namespace {

namespace fs = std::filesystem;

class WrongCommand : public testing::TestWithParam<BadCommand> {};

/// The error as the program prints it: each line of the text, then kind and code.
std::string printed(const BadCommand& row, const std::string& folder) {
  std::string lines = "accrue: error: " + replaced(std::string(row.text), "FOLDER", folder);
  for (size_t end = lines.find('\n'); end != std::string::npos; end = lines.find('\n', end + 1))
    lines.insert(end + 1, "accrue: error: ");
  return lines + "\naccrue: " + std::string(row.kind) + " [" + std::string(row.code) + "]\n";
}

TEST_P(WrongCommand, IsToldByTextKindCodeAndExitCode) {
  const BadCommand& row = GetParam();
  ASSERT_TRUE(row.command.starts_with("accrue"));
  const std::string folder = fresh_folder();
  for (const auto& [name, bytes] : kCommandFiles) {
    const fs::path path = fs::path(folder) / name;
    fs::create_directories(path.parent_path());
    write_file(path, std::string(bytes));
  }
  const std::string output = folder + ".out";
  const std::string errors = folder + ".err";
  const std::string line = "cd '" + folder + "' && env -i '" ACCRUE_PROGRAM "'" +
                           std::string(row.command.substr(6)) + " >'" + output + "' 2>'" + errors + "'";
  const int status = std::system(line.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), row.exit_code);
  EXPECT_EQ(read_file(errors), printed(row, folder));
  EXPECT_EQ(read_file(output), "");
  EXPECT_FALSE(fs::exists(folder + "/run")) << "a refusal makes no folder";
  fs::remove_all(folder);
  fs::remove(output);
  fs::remove(errors);
}

INSTANTIATE_TEST_SUITE_P(Table, WrongCommand, testing::ValuesIn(kBadCommands),
                         [](const testing::TestParamInfo<BadCommand>& row) {
                           return std::string(row.param.id.substr(row.param.id.find('.') + 1));
                         });

TEST(WrongCommands, HaveUniqueNames) {
  std::set<std::string_view> ids;
  for (const BadCommand& row : kBadCommands) EXPECT_TRUE(ids.insert(row.id).second) << row.id;
}

}  // namespace
}  // namespace accrue::test
