// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/paths.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "accrue/base/messages/config.h"
#include "accrue/config/load.h"

namespace accrue::config {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFileBytes = size_t{1} << 20;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_directory(path, ignored);
}

/// A file beside the configuration that has the name, or the relative path, of the missing one.
std::string beside(const fs::path& missing, const std::string& config_file) {
  if (config_file.empty()) return "";
  const fs::path folder = fs::path(absolute_path(config_file)).parent_path();
  const fs::path relative = missing.lexically_relative(absolute_path("."));
  for (const fs::path& candidate : {(folder / relative).lexically_normal(), folder / missing.filename()}) {
    if (candidate != missing && is_file(candidate)) {
      return "; there is one beside the configuration: write " + candidate.string() +
             " (paths are relative to the current folder)";
    }
  }
  return "";
}

void check_input(const Message& missing, const Message& folder, std::string_view key, const std::string& path,
                 const std::string& config_file, Problems& problems) {
  if (path.empty()) return;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    problems.add(folder, {{"key", key}, {"path", path}});
  } else if (!is_file(path)) {
    problems.add(missing, {{"key", key}, {"path", path}, {"hint", beside(path, config_file)}});
  }
}

}  // namespace

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) fail(message::config_is_folder, {{"path", path}});
  if (!fs::exists(path, ignored))
    fail(message::config_missing, {{"path", path}, {"full", absolute_path(path)}});
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (file.bad() || (text.empty() && !file.eof())) fail(message::config_unreadable, {{"path", path}});
  if (text.size() > kMaxFileBytes) fail(message::config_too_long, {{"path", path}, {"limit", kMaxFileBytes}});
  return text;
}

std::string absolute_path(const std::string& path) {
  if (path.empty()) return path;
  fs::path expanded = path;
  const char* home = std::getenv("HOME");
  if (path.starts_with("~/") && home != nullptr && *home != '\0') expanded = fs::path(home) / path.substr(2);
  std::error_code error;
  fs::path full = fs::absolute(expanded, error);
  if (error) full = expanded;
  full = full.lexically_normal();
  if (!full.has_filename() && full.has_relative_path()) full = full.parent_path();
  return full.string();
}

void check_paths(const Run& run, Problems& problems, const std::string& config_file) {
  check_input(message::data_file_missing, message::data_file_is_folder, "data.train", run.data.train,
              config_file, problems);
  check_input(message::data_file_missing, message::data_file_is_folder, "data.valid", run.data.valid,
              config_file, problems);
  check_input(message::weights_file_missing, message::weights_file_is_folder, "model.weights",
              run.model.weights, config_file, problems);
}

}  // namespace accrue::config
