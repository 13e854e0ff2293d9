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

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !is_folder(path);
}

/// What a key may name.
enum class Input { file, folder, either };

/// What the samples may lie in.
Input input_of(const Run& run) {
  const DataFormat format = run.data.format;
  if (format == DataFormat::image_folder) return Input::folder;
  if (format == DataFormat::idx || format == DataFormat::cifar || format == DataFormat::tokens)
    return Input::either;
  const bool by_content = format == DataFormat::automatic;
  const bool of_rows = run.task == Task::regression || run.task == Task::classification;
  return by_content && !of_rows ? Input::either : Input::file;
}

/// A file (or folder, where that will do) beside the configuration that has the name, or the relative path,
/// of the missing one.
std::string beside(const fs::path& missing, Input wanted, const std::string& config_file) {
  if (config_file.empty()) return "";
  const fs::path folder = fs::path(absolute_path(config_file)).parent_path();
  const fs::path relative = missing.lexically_relative(absolute_path("."));
  for (const fs::path& candidate : {(folder / relative).lexically_normal(), folder / missing.filename()}) {
    const bool fits =
        (wanted != Input::folder && is_file(candidate)) || (wanted != Input::file && is_folder(candidate));
    if (candidate != missing && fits) {
      return "; there is one beside the configuration: write " + candidate.string() +
             " (paths are relative to the current folder)";
    }
  }
  return "";
}

void check_data(std::string_view key, const std::string& path, Input wanted, const std::string& config_file,
                Problems& problems) {
  if (path.empty()) return;
  if (is_folder(path)) {
    if (wanted == Input::file) problems.add(message::data_file_is_folder, {{"key", key}, {"path", path}});
  } else if (is_file(path)) {
    if (wanted == Input::folder) problems.add(message::data_is_no_folder, {{"key", key}, {"path", path}});
  } else {
    problems.add(wanted == Input::file ? message::data_file_missing : message::data_missing,
                 {{"key", key}, {"path", path}, {"hint", beside(path, wanted, config_file)}});
  }
}

void check_weights(const std::string& path, const std::string& config_file, Problems& problems) {
  if (path.empty()) return;
  if (is_folder(path)) {
    problems.add(message::weights_file_is_folder, {{"key", "model.weights"}, {"path", path}});
  } else if (!is_file(path)) {
    problems.add(
        message::weights_file_missing,
        {{"key", "model.weights"}, {"path", path}, {"hint", beside(path, Input::file, config_file)}});
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
  const Input wanted = input_of(run);
  check_data("data.train", run.data.train, wanted, config_file, problems);
  check_data("data.valid", run.data.valid, wanted, config_file, problems);
  check_weights(run.model.weights, config_file, problems);
}

}  // namespace accrue::config
