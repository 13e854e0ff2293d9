// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/without_budget.h"

#include <algorithm>

#include "accrue/memory/allocator.h"
#include "accrue/memory/machine.h"
#include "accrue/plan/headroom.h"

namespace accrue {

WithoutBudget::WithoutBudget() : budget_(memory::budget()) {
  const std::optional<memory::Offered> offered = memory::offered_memory();
  memory::set_budget(
      offered ? std::optional(std::max(offered->bytes - guard_of(offered->bytes), budget_.value_or(1)))
              : std::nullopt);
}

WithoutBudget::~WithoutBudget() {
  memory::empty_cache();
  memory::set_budget(budget_);
}

}  // namespace accrue
