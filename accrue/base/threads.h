// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace accrue {

/// A number of threads (at least 1) and what it was limited by.
struct ThreadCount {
  int count = 1;
  std::string
      origin;  ///< "physical cores", "affinity", "cgroup quota", or "processors" where none of them is told
};

/// The smallest of this process's CPU affinity, its cgroup (v1 or v2) quota rounded up, and the physical
/// cores; what the system does not tell is left out. `root` stands for "/" when proc and sys files are read.
ThreadCount default_threads(const std::filesystem::path& root = "/");

}  // namespace accrue
