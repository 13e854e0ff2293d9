// SPDX-License-Identifier: Apache-2.0
#include "accrue/batch/batcher.h"

#include "accrue/base/error.h"
#include "accrue/base/messages/batch.h"

namespace accrue {

Batcher::Batcher(std::shared_ptr<const Data> data, Sampler sampler)
    : data_(std::move(data)), sampler_(std::move(sampler)) {
  if (data_->size() != sampler_.num_samples())
    fail(message::batcher_wrong_size, {{"sampler", sampler_.num_samples()}, {"data", data_->size()}});
}

std::optional<Batch> Batcher::next() {
  std::optional<std::vector<int64_t>> ids = sampler_.next();
  if (!ids) return std::nullopt;
  NamedTensors fields = data_->gather(*ids);
  return Batch(std::move(fields), std::move(*ids));
}

}  // namespace accrue
