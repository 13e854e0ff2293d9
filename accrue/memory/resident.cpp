// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/resident.h"

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace accrue::memory {

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

}  // namespace accrue::memory
