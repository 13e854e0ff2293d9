// SPDX-License-Identifier: Apache-2.0
#include "accrue/train/refusal.h"

#include "accrue/memory/allocator.h"
#include "accrue/memory/device.h"

namespace accrue {

void give_back_memory(const GradientBuffer& gradients) {
  memory::empty_cache();
  for (const at::Tensor& flat : gradients.flats()) memory::empty_device_cache(flat.device());
}

Layout layout_of(const Model& model) {
  return model.takes_offsets ? Layout::end_to_end : Layout::padded;
}

}  // namespace accrue
