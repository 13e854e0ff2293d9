// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace accrue::models {

/// ModelError that calls the size `what`, unless it is at least 1.
void check_size(std::string_view what, int64_t got);

/// BudgetError for more parameters (fp32) than this machine's memory holds: the system would grant it and
/// then kill.
void check_memory(double parameters);

}  // namespace accrue::models
