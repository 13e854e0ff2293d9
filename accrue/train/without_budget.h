// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace accrue {

/// Lifts the allocator's budget to what the machine offers, less its guard, for a scope: to find out what
/// would be enough. Gives kept memory back at its end.
class WithoutBudget {
 public:
  WithoutBudget();
  ~WithoutBudget();
  WithoutBudget(const WithoutBudget&) = delete;
  WithoutBudget& operator=(const WithoutBudget&) = delete;

 private:
  std::optional<int64_t> budget_;
};

}  // namespace accrue
