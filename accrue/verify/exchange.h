// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "accrue/microstep/model.h"

namespace accrue {

/// Gives tensors a storage of their own while it lives: a copy of their values, in another floating type if
/// one is given (integers keep theirs). The tensor objects stay, so a model needs no cloning; afterwards each
/// has its first storage, type and version again, untouched by whatever was written meanwhile.
class ExchangedStorages {
 public:
  explicit ExchangedStorages(const std::vector<NamedTensor>& tensors,
                             std::optional<at::ScalarType> floating_type = std::nullopt);
  ~ExchangedStorages();
  ExchangedStorages(const ExchangedStorages&) = delete;
  ExchangedStorages& operator=(const ExchangedStorages&) = delete;

 private:
  struct Original {
    at::Tensor tensor;
    at::Tensor data;  // shares the first storage
    int64_t version;
  };
  void put_back() noexcept;

  std::vector<Original> originals_;
};

/// Parameters and buffers of a model in one list.
std::vector<NamedTensor> all_tensors(const Model& model);

}  // namespace accrue
