// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "accrue/batch/batch.h"
#include "accrue/batch/sampler.h"
#include "accrue/data/data.h"

namespace accrue {

/// Gives the batches of the updates: a sampler's ids, gathered from the data.
class Batcher {
 public:
  /// Throws ArgumentError if the sampler was made for another number of samples.
  Batcher(std::shared_ptr<const Data> data, Sampler sampler);

  /// The batch of the next update, its ids being indices of the data; nothing after the last one.
  std::optional<Batch> next();
  Sampler& sampler() noexcept { return sampler_; }
  const Sampler& sampler() const noexcept { return sampler_; }

 private:
  std::shared_ptr<const Data> data_;
  Sampler sampler_;
};

}  // namespace accrue
