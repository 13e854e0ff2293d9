// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/machine.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>

#include "accrue/memory/resident.h"

namespace accrue::memory {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNoLimit = int64_t{1} << 60;  // v1 writes "none" as the largest multiple of a page

std::optional<int64_t> number_in(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t:");
  if (start == std::string_view::npos) return std::nullopt;
  int64_t number = 0;
  const auto parsed = std::from_chars(text.data() + start, text.data() + text.size(), number);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return number;
}

std::optional<int64_t> number_of_file(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return number_in(line);
}

/// The number behind `key` in a file of lines such as "key 5" or "key:  5 kB".
std::optional<int64_t> number_of_key(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::string_view view = line;
    if (view.starts_with(key) && view.substr(key.size()).find_first_of(" \t:") == 0)
      return number_in(view.substr(key.size()));
  }
  return std::nullopt;
}

/// The names of the files of a version of cgroups.
struct Version {
  const char* name;
  const char* limit;
  const char* slow_limit;  ///< above it the group's processes are held up; null: there is no such file
  const char* usage;
  const char* active_files;
  const char* inactive_files;
};
constexpr Version kVersion1 = {"cgroup v1",         "memory.limit_in_bytes", nullptr, "memory.usage_in_bytes",
                               "total_active_file", "total_inactive_file"};
constexpr Version kVersion2 = {"cgroup v2",      "memory.max",  "memory.high",
                               "memory.current", "active_file", "inactive_file"};

/// Empty where the file is missing or says that there is none ("max", no number).
std::optional<int64_t> limit_of(const fs::path& path) {
  const std::optional<int64_t> limit = number_of_file(path);
  return limit && *limit < kNoLimit ? limit : std::nullopt;
}

/// What a group's limits leave, this process's own memory taken as used.
std::optional<int64_t> left_in(const fs::path& folder, const Version& version) {
  std::optional<int64_t> limit = limit_of(folder / version.limit);
  if (version.slow_limit != nullptr)
    if (const std::optional<int64_t> slow = limit_of(folder / version.slow_limit))
      limit = std::min(*slow, limit.value_or(*slow));
  if (!limit) return std::nullopt;
  const int64_t used = number_of_file(folder / version.usage).value_or(0);
  const int64_t files = number_of_key(folder / "memory.stat", version.active_files).value_or(0) +
                        number_of_key(folder / "memory.stat", version.inactive_files).value_or(0);
  return *limit - std::max<int64_t>(0, used - files);
}

void keep_smaller(std::optional<Offered>& smallest, int64_t bytes, const std::string& limited_by) {
  if (!smallest || bytes < smallest->bytes) smallest = Offered{bytes, limited_by};
}

void compare_groups(std::optional<Offered>& smallest, const fs::path& mount, fs::path group,
                    const Version& version) {
  while (true) {
    if (const std::optional<int64_t> left = left_in(mount / group.relative_path(), version))
      keep_smaller(smallest, *left, std::string(version.name) + " " + group.string());
    if (!group.has_relative_path()) return;
    group = group.parent_path();
  }
}

bool names_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::string_view name = controllers.substr(0, controllers.find(','));
    if (name == "memory") return true;
    controllers.remove_prefix(std::min(controllers.size(), name.size() + 1));
  }
  return false;
}

}  // namespace

std::optional<Offered> offered_memory(const fs::path& root) {
  constexpr int64_t kKibi = 1024;
  std::optional<Offered> smallest;
  if (const std::optional<int64_t> kibibytes = number_of_key(root / "proc/meminfo", "MemAvailable"))
    smallest = Offered{*kibibytes * kKibi, "memory of the machine"};
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:memory:/a/b" or "0::/a/b"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    const fs::path mount = root / "sys/fs/cgroup";
    if (controllers.empty())
      compare_groups(smallest, mount, group, kVersion2);
    else if (names_memory(controllers))
      compare_groups(smallest, mount / "memory", group, kVersion1);
  }
  if (!smallest) return std::nullopt;
  const Resident own = read_resident(root);
  smallest->bytes = std::max<int64_t>(0, smallest->bytes + own.all - own.files);
  return smallest;
}

}  // namespace accrue::memory
