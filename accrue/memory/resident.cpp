// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/resident.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace accrue::memory {
namespace {

/// Of the line of a statm file: pages of the whole, resident ones, those of them that are files'.
Resident resident_of(std::string_view statm) noexcept {
  static const int64_t page = ::sysconf(_SC_PAGESIZE);
  std::array<int64_t, 3> pages{};
  for (int64_t& number : pages) {
    const auto parsed = std::from_chars(statm.data(), statm.data() + statm.size(), number);
    if (parsed.ec != std::errc{}) return {};
    statm.remove_prefix(std::min(statm.size(), static_cast<size_t>(parsed.ptr - statm.data()) + 1));
  }
  return {pages[1] * page, pages[2] * page};
}

}  // namespace

std::optional<int64_t> peak_resident_bytes(const std::filesystem::path& root) {
  constexpr std::string_view kKey = "VmHWM:";
  constexpr int64_t kKibi = 1024;
  std::ifstream file(root / "proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kKey)) continue;
    const size_t start = line.find_first_not_of(" \t", kKey.size());
    if (start == std::string::npos) return std::nullopt;
    int64_t kibibytes = 0;
    const auto parsed = std::from_chars(line.data() + start, line.data() + line.size(), kibibytes);
    if (parsed.ec != std::errc{}) return std::nullopt;
    return kibibytes * kKibi;
  }
  return std::nullopt;
}

Resident read_resident() noexcept {
  static const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  std::array<char, 128> text{};
  const ssize_t length = file < 0 ? -1 : ::pread(file, text.data(), text.size(), 0);
  return length <= 0 ? Resident{} : resident_of({text.data(), static_cast<size_t>(length)});
}

Resident read_resident(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/self/statm");
  std::string line;
  std::getline(file, line);
  return resident_of(line);
}

std::optional<int64_t> resident_bytes(const std::filesystem::path& root) {
  const Resident resident = root == "/" ? read_resident() : read_resident(root);
  return resident.all > 0 ? std::optional(resident.all) : std::nullopt;
}

}  // namespace accrue::memory
