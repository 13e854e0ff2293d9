// SPDX-License-Identifier: Apache-2.0
#include "accrue/batch/batcher.h"

#include "accrue/base/error.h"
#include "accrue/base/messages/batch.h"

namespace accrue {

class Batcher::Reader {};

Batcher::Batcher(std::shared_ptr<const Data> data, Sampler sampler, int64_t /*read_ahead*/)
    : data_(std::move(data)), sampler_(std::move(sampler)) {
  if (data_->size() != sampler_.num_samples())
    fail(message::batcher_wrong_size, {{"sampler", sampler_.num_samples()}, {"data", data_->size()}});
}

Batcher::~Batcher() = default;
Batcher::Batcher(Batcher&&) noexcept = default;
Batcher& Batcher::operator=(Batcher&&) noexcept = default;

std::optional<Batch> Batcher::next() {
  std::optional<std::vector<int64_t>> ids = sampler_.next();
  if (!ids) return std::nullopt;
  NamedTensors fields = data_->gather_for_training(*ids, sampler_.epochs());
  return Batch(std::move(fields), std::move(*ids));
}

const Sampler& Batcher::sampler() const noexcept {
  return sampler_;
}

}  // namespace accrue
