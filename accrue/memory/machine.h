// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace accrue::memory {

/// What this process may have, its own resident size included.
struct Offered {
  int64_t bytes = 0;
  std::string limited_by;  ///< "memory of the machine", "cgroup v2 /a/b", "cgroup v1 /a/b"
};

/// The smallest of what the machine has available (MemAvailable) and, for each cgroup (v1 or v2) from this
/// process's own up to the root, what its limit leaves beside its other processes (file pages that can be
/// dropped are not counted), each with this process's own resident size added, without its mapped files, for
/// those are in what is available. Empty where the system tells nothing. `root` stands for "/".
std::optional<Offered> offered_memory(const std::filesystem::path& root = "/");

}  // namespace accrue::memory
