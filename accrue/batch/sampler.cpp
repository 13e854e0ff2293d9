// SPDX-License-Identifier: Apache-2.0
#include "accrue/batch/sampler.h"

#include <algorithm>
#include <limits>

#include "accrue/base/count.h"
#include "accrue/base/log.h"
#include "accrue/base/messages/batch.h"
#include "accrue/base/random.h"

namespace accrue {

Sampler::Sampler(int64_t num_samples, const BatchOptions& options, uint64_t seed,
                 std::optional<int64_t> epochs)
    : num_samples_(Count(num_samples).positive("number of samples")),
      options_(options),
      seed_(seed),
      epochs_(epochs) {
  Count(options_.size).positive("batch.size");
  if (epochs_) Count(*epochs_).positive("epochs");
  const int64_t left = num_samples_ % options_.size;
  if (options_.last == LastBatch::error && left != 0)
    fail(message::sampler_error_leftover,
         {{"samples", num_samples_}, {"size", options_.size}, {"left", left}});
  if (options_.last == LastBatch::drop && options_.size > num_samples_)
    fail(message::sampler_drop_all, {{"samples", num_samples_}, {"size", options_.size}});
  if (options_.last == LastBatch::flush && options_.size > num_samples_)
    warn(message::sampler_larger_than_data, {{"samples", num_samples_}, {"size", options_.size}});
  open_epoch();
}

void Sampler::open_epoch() {
  order_.reset();
  if (options_.order == Order::shuffled && !finished())
    order_ = std::make_shared<const std::vector<int64_t>>(
        permutation(num_samples_, seed_, static_cast<uint64_t>(position_.epoch)));
}

void Sampler::take(std::vector<int64_t>& ids) {
  const int64_t wanted = options_.size - static_cast<int64_t>(ids.size());
  const int64_t end = position_.offset + std::min(wanted, num_samples_ - position_.offset);
  for (int64_t place = position_.offset; place < end; ++place)
    ids.push_back(order_ ? (*order_)[static_cast<size_t>(place)] : place);
  epochs_of_ids_.resize(ids.size(), position_.epoch);
  position_.offset = end;
}

std::optional<std::vector<int64_t>> Sampler::next() {
  std::vector<int64_t> ids;
  epochs_of_ids_.clear();
  while (static_cast<int64_t>(ids.size()) < options_.size && !finished()) {
    take(ids);
    const int64_t left = num_samples_ - position_.offset;
    const bool cut = options_.last == LastBatch::drop && left < options_.size;
    if (left > 0 && !cut) continue;
    position_.dropped += left;
    position_.offset = 0;
    ++position_.epoch;
    open_epoch();
    if (options_.last != LastBatch::carry) break;
  }
  if (ids.empty()) return std::nullopt;
  return ids;
}

int64_t Sampler::updates_per_epoch() const noexcept {
  const int64_t full = num_samples_ / options_.size;
  const bool short_one = num_samples_ % options_.size != 0 && options_.last != LastBatch::drop;
  return full + (short_one ? 1 : 0);
}

int64_t Sampler::updates_in(int64_t epochs) const noexcept {
  const bool carries = options_.last == LastBatch::carry;
  int64_t product = 0;
  if (__builtin_mul_overflow(carries ? num_samples_ : updates_per_epoch(), epochs, &product))
    return std::numeric_limits<int64_t>::max();
  if (!carries) return product;
  return product / options_.size + (product % options_.size != 0 ? 1 : 0);
}

void Sampler::restore(const SamplerPosition& position) {
  const bool fits =
      position.epoch >= 0 && position.offset >= 0 && position.offset < num_samples_ && position.dropped >= 0;
  if (!fits)
    fail(message::sampler_wrong_position,
         {{"epoch", position.epoch}, {"offset", position.offset}, {"samples", num_samples_}});
  position_ = position;
  open_epoch();
}

}  // namespace accrue
