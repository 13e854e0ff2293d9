// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <istream>
#include <vector>

namespace accrue::memory {

/// Gives back the pages of the program's and its libraries' code: the system maps them again where the code
/// runs, from its cache of files or else from the disk. Most of them ran once, while libraries were loaded.
/// What runs on comes back and counts again: call it before memory is measured, not to make room beside
/// tensors. What somebody has written to (a debugger's breakpoints) stays. Libraries may be loaded and
/// unloaded meanwhile; no thread may patch code. Returns the bytes given back, 0 where the system does not
/// tell.
int64_t release_code() noexcept;

/// Code in memory that the system can read again.
struct CleanCode {
  uintptr_t start = 0;
  uintptr_t end = 0;
  int64_t resident = 0;  ///< bytes
};

/// All of it in a text as of /proc/self/smaps: mapped privately from a file, executable and not writable, and
/// no page of it written to, be it in memory or swapped out. An entry that does not tell is left out.
std::vector<CleanCode> clean_code(std::istream& smaps);

}  // namespace accrue::memory
