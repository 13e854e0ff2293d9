// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace accrue {

/// Throws IndexError for an id outside [0, size).
void check_ids(std::span<const int64_t> ids, int64_t size);

}  // namespace accrue
