// SPDX-License-Identifier: Apache-2.0
#include "accrue/verify/exchange.h"

#include <ATen/ops/clone.h>
#include <c10/core/GradMode.h>

namespace accrue {

ExchangedStorages::ExchangedStorages(const std::vector<NamedTensor>& tensors,
                                     std::optional<at::ScalarType> floating_type) {
  const c10::NoGradGuard no_grad;
  originals_.reserve(tensors.size());
  try {
    for (const NamedTensor& entry : tensors) {
      const at::Tensor data = entry.tensor.variable_data();
      const bool converts = floating_type && data.is_floating_point() && data.scalar_type() != *floating_type;
      const at::Tensor copy = converts ? data.to(*floating_type) : data.clone();
      const int64_t version = entry.tensor.is_inference() ? 0 : static_cast<int64_t>(entry.tensor._version());
      originals_.push_back({entry.tensor, data, version});
      // Not `tensor = copy`: set_data also drops a gradient accumulator that was made for the other type.
      entry.tensor.set_data(copy);
    }
  } catch (...) {
    put_back();
    throw;
  }
}

ExchangedStorages::~ExchangedStorages() {
  put_back();
}

void ExchangedStorages::put_back() noexcept {
  const c10::NoGradGuard no_grad;
  for (const Original& original : originals_) {
    original.tensor.set_data(original.data);
    if (original.tensor.is_inference()) continue;
    // The values are those of before, so whoever watches the version has nothing to see.
    c10::VariableVersion version = original.tensor.unsafeGetTensorImpl()->version_counter();
    version.set_version(original.version);
  }
}

std::vector<NamedTensor> all_tensors(const Model& model) {
  std::vector<NamedTensor> list = model.parameters();
  for (const NamedTensor& buffer : model.buffers()) list.push_back(buffer);
  return list;
}

}  // namespace accrue
