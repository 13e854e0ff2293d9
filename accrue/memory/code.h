// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace accrue::memory {

/// Gives back the pages of the program's and its libraries' code: the system maps them again where the code
/// runs, from its cache of files or else from the disk. Most of them ran once, while libraries were loaded.
/// What somebody has written to (a debugger's breakpoints) stays. Returns the bytes given back, 0 where the
/// system does not tell.
int64_t release_code() noexcept;

}  // namespace accrue::memory
