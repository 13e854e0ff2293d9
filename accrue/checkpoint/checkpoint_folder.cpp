// SPDX-License-Identifier: Apache-2.0
#include "accrue/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <tuple>

#include "accrue/base/error.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/checkpoint.h"

namespace accrue {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "update-";

std::optional<int64_t> update_of(const std::string& name) {
  if (!name.starts_with(kPrefix) || name.size() == kPrefix.size() || name[kPrefix.size()] == '-')
    return std::nullopt;
  int64_t update = 0;
  const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), update);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return update;
}

struct Search {
  std::optional<fs::path> found;
  std::string skipped;
};

Search search(const fs::path& output_dir) {
  Search result;
  std::vector<CheckpointFolder> folders = list_checkpoints(output_dir);
  std::reverse(folders.begin(), folders.end());
  for (const CheckpointFolder& folder : folders) {
    const std::optional<std::string> damage = checkpoint_damage(folder.path);
    if (!damage) {
      result.found = folder.path;
      break;
    }
    warn(message::checkpoint_skipped, {{"path", folder.path.string()}, {"damage", *damage}});
    result.skipped += (result.skipped.empty() ? "" : ", ") + folder.path.filename().string();
  }
  return result;
}

// Out of sight first, so that a kill in mid-removal leaves no folder that looks like a checkpoint.
void remove_checkpoint(const fs::path& checkpoint) {
  const fs::path away = checkpoint.parent_path() / (".tmp-" + checkpoint.filename().string() + "-removed");
  std::error_code error;
  fs::remove_all(away, error);
  if (!error) fs::rename(checkpoint, away, error);
  if (!error) fs::remove_all(away, error);
  if (error)
    warn(message::checkpoint_not_removed, {{"path", checkpoint.string()}, {"reason", error.message()}});
}

}  // namespace

std::string checkpoint_name(int64_t update) {
  constexpr size_t kDigits = 6;
  const std::string digits = std::to_string(update);
  return std::string(kPrefix) + std::string(kDigits - std::min(kDigits, digits.size()), '0') + digits;
}

fs::path checkpoints_folder(const fs::path& output_dir) {
  return output_dir / "checkpoints";
}

std::vector<CheckpointFolder> list_checkpoints(const fs::path& output_dir) {
  const fs::path folder = checkpoints_folder(output_dir);
  std::vector<CheckpointFolder> list;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::optional<int64_t> update = update_of(entry->path().filename().string());
    std::error_code ignored;
    if (update && entry->is_directory(ignored)) list.push_back({*update, entry->path()});
  }
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    fail(message::checkpoints_unreadable, {{"path", folder.string()}, {"reason", error.message()}});
  std::sort(list.begin(), list.end(), [](const CheckpointFolder& left, const CheckpointFolder& right) {
    return std::tie(left.update, left.path) < std::tie(right.update, right.path);
  });
  return list;
}

std::optional<fs::path> latest_checkpoint(const fs::path& output_dir) {
  return search(output_dir).found;
}

fs::path find_checkpoint(const fs::path& where) {
  fs::path path = where.lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  std::error_code error;
  if (!fs::is_directory(path, error)) fail(message::checkpoint_no_folder, {{"path", where.string()}});
  const bool is_checkpoint =
      update_of(path.filename().string()) || fs::exists(path / checkpoint_file::kComplete, error);
  if (is_checkpoint) {
    if (const std::optional<std::string> damage = checkpoint_damage(path))
      fail(message::checkpoint_damaged, {{"path", path.string()}, {"damage", *damage}});
    return path;
  }
  const fs::path output_dir = path.filename() == "checkpoints" ? path.parent_path() : path;
  const Search result = search(output_dir);
  if (result.found) return *result.found;
  const std::string what = result.skipped.empty() ? "there is none" : "damaged: " + result.skipped;
  fail(message::checkpoint_none, {{"path", checkpoints_folder(output_dir).string()}, {"found", what}});
}

void keep_last_checkpoints(const fs::path& output_dir, int64_t newest, int64_t keep,
                           std::optional<int64_t> best) {
  std::vector<CheckpointFolder> folders = list_checkpoints(output_dir);
  std::error_code error;
  std::erase_if(folders, [&](const CheckpointFolder& folder) {
    return folder.update > newest || !fs::exists(folder.path / checkpoint_file::kComplete, error);
  });
  for (size_t i = 0; i + static_cast<size_t>(keep) < folders.size(); ++i)
    if (folders[i].update != best) remove_checkpoint(folders[i].path);
}

void discard_later_checkpoints(const fs::path& output_dir, int64_t update) {
  for (const CheckpointFolder& folder : list_checkpoints(output_dir)) {
    if (folder.update <= update) continue;
    warn(message::checkpoint_discarded, {{"path", folder.path.string()}, {"update", update}});
    remove_checkpoint(folder.path);
  }
}

}  // namespace accrue
