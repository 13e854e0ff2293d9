// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/threads.h"

#include <charconv>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

namespace accrue {
namespace {

namespace fs = std::filesystem;

std::optional<int64_t> number_at(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == ':'))
    text.remove_prefix(1);
  int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return number;
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The number of CPUs in a kernel list such as "0-3,8".
int64_t count_of_list(std::string_view list) {
  int64_t count = 0;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    const std::optional<int64_t> low = number_at(part);
    const size_t dash = part.find('-');
    const std::optional<int64_t> high =
        dash == std::string_view::npos ? low : number_at(part.substr(dash + 1));
    if (!low || !high || *high < *low) return 0;
    count += *high - *low + 1;
    list.remove_prefix(std::min(list.size(), part.size() + 1));
  }
  return count;
}

int64_t affinity_count(const fs::path& root) {
  std::ifstream file(root / "proc/self/status");
  constexpr std::string_view kField = "Cpus_allowed_list:";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kField)) continue;
    const size_t start = line.find_first_not_of(" \t", kField.size());
    return start == std::string::npos ? 0 : count_of_list(std::string_view(line).substr(start));
  }
  return 0;
}

int64_t rounded_up(int64_t quota, int64_t period) {
  return quota > 0 && period > 0 ? (quota - 1) / period + 1 : 0;
}

/// The quota of one cgroup folder in CPUs; 0 where it has none.
int64_t folder_quota(const fs::path& folder, bool unified) {
  if (unified) {
    const std::string line = first_line(folder / "cpu.max");
    const size_t space = line.find(' ');
    const std::optional<int64_t> quota = number_at(line);
    if (!quota || space == std::string::npos) return 0;
    return rounded_up(*quota, number_at(std::string_view(line).substr(space)).value_or(0));
  }
  return rounded_up(number_at(first_line(folder / "cpu.cfs_quota_us")).value_or(0),
                    number_at(first_line(folder / "cpu.cfs_period_us")).value_or(0));
}

/// The smallest quota on the way from the process's group up to the mount; 0 where there is none.
int64_t smallest_quota(const fs::path& mount, fs::path group, bool unified) {
  int64_t smallest = 0;
  while (true) {
    const int64_t quota = folder_quota(mount / group.relative_path(), unified);
    if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
    if (!group.has_relative_path()) return smallest;
    group = group.parent_path();
  }
}

bool names_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::string_view name = controllers.substr(0, controllers.find(','));
    if (name == "cpu") return true;
    controllers.remove_prefix(std::min(controllers.size(), name.size() + 1));
  }
  return false;
}

int64_t quota_count(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  int64_t smallest = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && !names_cpu(controllers)) continue;
    fs::path mount = root / "sys/fs/cgroup";
    if (!unified) mount /= fs::exists(mount / controllers) ? controllers : "cpu";
    const int64_t quota = smallest_quota(mount, "/" + line.substr(second + 1), unified);
    if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
  }
  return smallest;
}

int64_t physical_cores(const fs::path& root) {
  std::ifstream file(root / "proc/cpuinfo");
  std::set<std::pair<std::string, std::string>> cores;
  std::string package;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    if (line.starts_with("physical id")) package = line.substr(colon + 1);
    if (line.starts_with("core id")) cores.emplace(package, line.substr(colon + 1));
  }
  if (!cores.empty()) return static_cast<int64_t>(cores.size());
  for (int cpu = 0;; ++cpu) {
    const fs::path topology = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "topology";
    const std::string core = first_line(topology / "core_id");
    if (core.empty()) return static_cast<int64_t>(cores.size());
    cores.emplace(first_line(topology / "physical_package_id"), core);
  }
}

}  // namespace

ThreadCount default_threads(const fs::path& root) {
  const std::pair<int64_t, const char*> limits[] = {{physical_cores(root), "physical cores"},
                                                    {affinity_count(root), "affinity"},
                                                    {quota_count(root), "cgroup quota"}};
  int64_t count = 0;
  ThreadCount found;
  for (const auto& [limit, origin] : limits) {
    if (limit <= 0 || (count > 0 && limit >= count)) continue;
    count = limit;
    found.origin = origin;
  }
  if (count > 0) {
    found.count = static_cast<int>(std::min<int64_t>(count, 4096));
    return found;
  }
  found.count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  found.origin = "processors";
  return found;
}

}  // namespace accrue
