// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace accrue::test {

/// The folder of this program's files, which goes when it ends. A forked child has its parent's, and leaves
/// it.
class ProgramFolder {
 public:
  static const std::filesystem::path& path() {
    static const ProgramFolder folder;
    return folder.path_;
  }
  ~ProgramFolder() {
    std::error_code ignored;
    if (::getpid() == owner_) std::filesystem::remove_all(path_, ignored);
  }
  ProgramFolder(const ProgramFolder&) = delete;
  ProgramFolder& operator=(const ProgramFolder&) = delete;

 private:
  ProgramFolder() {
    std::filesystem::remove_all(path_);  // of a program that was killed
    std::filesystem::create_directories(path_);
  }

  pid_t owner_ = ::getpid();
  std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) / ("accrue-tests-" + std::to_string(owner_));
};

/// A fresh, empty folder of the running test.
inline std::string fresh_folder() {
  const testing::TestInfo* const info = testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path folder =
      ProgramFolder::path() / (std::string(info->test_suite_name()) + "-" + info->name());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

/// Writes `bytes` to the file and returns its path.
inline std::string write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

inline std::string read_file(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

/// `text` with every `from` replaced.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t place = text.find(from); place != std::string::npos; place = text.find(from, place + to.size()))
    text.replace(place, from.size(), to);
  return text;
}

}  // namespace accrue::test
