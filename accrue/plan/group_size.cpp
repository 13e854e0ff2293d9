// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/group_size.h"

#include <algorithm>

namespace accrue {

GroupSize with_sample(const GroupSize& group, int64_t size, Layout layout) {
  const auto added = static_cast<double>(size);
  GroupSize grown{.samples = group.samples + 1};
  if (layout == Layout::end_to_end) {
    grown.total = group.total + added;
    grown.squares = group.squares + added * added;
  } else {
    const double largest = std::max(group.samples == 0 ? 0 : group.total / group.samples, added);
    grown.total = grown.samples * largest;
    grown.squares = grown.total * largest;
  }
  return grown;
}

GroupSize group_size(std::span<const int64_t> sizes, Layout layout) {
  GroupSize group;
  for (const int64_t size : sizes) group = with_sample(group, size, layout);
  return group;
}

}  // namespace accrue
