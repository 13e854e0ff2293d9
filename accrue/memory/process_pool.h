// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/memory/pool.h"

namespace accrue::memory {

/// The pool behind the functions of allocator.h. Never destroyed, since tensors may outlive static objects.
Pool& process_pool() noexcept;
/// From now on `is_installed` holds.
void note_installed() noexcept;
Phase phase_of_this_thread() noexcept;

}  // namespace accrue::memory
