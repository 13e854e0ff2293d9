// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/refusal.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "accrue/memory/allocator.h"
#include "accrue/memory/device.h"
#include "accrue/plan/by_size.h"

namespace accrue {

Plan split_like(const Plan& plan, size_t refused, std::span<const int64_t> sizes, Layout layout) {
  const std::vector<GroupSize> before = group_sizes(plan, sizes, layout);
  Plan cut = plan;
  for (size_t g = plan.groups.size(); g-- > 0;) {
    const bool as_large = before[g].total >= before[refused].total || g == refused;
    if (as_large && plan.groups[g].length > 1) cut = split_group(cut, g);
  }
  const std::vector<GroupSize> after = group_sizes(cut, sizes, layout);
  std::vector<size_t> order(cut.groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return after[a].total > after[b].total; });
  Plan sorted = cut;
  for (size_t g = 0; g < order.size(); ++g) sorted.groups[g] = cut.groups[order[g]];
  return sorted;
}

void give_back_memory(const GradientBuffer& gradients) {
  memory::empty_cache();
  for (const at::Tensor& flat : gradients.flats()) memory::empty_device_cache(flat.device());
}

Layout layout_of(const Model& model) {
  return model.takes_offsets ? Layout::end_to_end : Layout::padded;
}

}  // namespace accrue
