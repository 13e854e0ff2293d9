// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace accrue::memory {

/// The largest resident size that this process has had so far, in bytes (VmHWM of /proc/self/status); empty
/// where the system does not tell. `root` stands for "/".
std::optional<int64_t> peak_resident_bytes(const std::filesystem::path& root = "/");

/// The resident size of this process now, in bytes (/proc/self/statm); empty where the system does not tell.
/// Allocates nothing for the real root.
std::optional<int64_t> resident_bytes(const std::filesystem::path& root = "/");

/// The resident size in bytes and the part of it that the system can drop and read again.
struct Resident {
  int64_t all = 0;    ///< 0: the system does not tell
  int64_t files = 0;  ///< pages of mapped files
};
/// Of this process now, from /proc/self/statm; opens that file once and allocates nothing.
Resident read_resident() noexcept;
Resident read_resident(const std::filesystem::path& root);

}  // namespace accrue::memory
