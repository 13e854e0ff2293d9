// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace accrue::test {

/// True where the suite runs with the micro-batch forced to 1 (ACCRUE_TEST_MICRO_BATCH=1).
inline bool micro_batch_is_one() {
  const char* forced = std::getenv("ACCRUE_TEST_MICRO_BATCH");
  return forced != nullptr && std::string_view(forced) == "1";
}

/// The micro-batch that a test asks for, or 1 where the suite forces it.
inline int64_t test_micro_batch(int64_t wanted) {
  return micro_batch_is_one() ? 1 : wanted;
}

/// Sizes of `batch` rows cut into full micro-batches of `micro_batch` and one smaller at the end.
inline std::vector<int64_t> sizes_of(int64_t batch, int64_t micro_batch) {
  std::vector<int64_t> sizes;
  for (int64_t start = 0; start < batch; start += micro_batch) {
    sizes.push_back(batch - start < micro_batch ? batch - start : micro_batch);
  }
  return sizes;
}

}  // namespace accrue::test
