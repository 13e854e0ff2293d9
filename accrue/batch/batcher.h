// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "accrue/batch/batch.h"
#include "accrue/batch/sampler.h"
#include "accrue/data/data.h"

namespace accrue {

/// Gives the batches of the updates: a sampler's ids, gathered from the data for training.
class Batcher {
 public:
  /// `read_ahead`: so many batches are gathered in a background thread before they are asked for; the
  /// batches, their order and the positions are the same. The thread begins at once, so nobody else may
  /// gather from `data` while the batcher lives. 0: no thread. Throws ArgumentError if the sampler was made
  /// for another number of samples, or for a negative number.
  Batcher(std::shared_ptr<const Data> data, Sampler sampler, int64_t read_ahead = 0);
  /// Stops the thread, after the batch that it is gathering.
  ~Batcher();
  Batcher(Batcher&&) noexcept;
  Batcher& operator=(Batcher&&) noexcept;

  /// The batch of the next update, its ids being indices of the data; nothing after the last one. An error of
  /// the data is thrown by the call that would have given the batch, and by every later one. Where memory is
  /// refused, reading ahead ends with a warning and the batch is gathered once more.
  std::optional<Batch> next();
  /// Stands after the batch that `next` gave last, however far was read ahead.
  const Sampler& sampler() const noexcept;

 private:
  class Reader;
  struct Reading;
  Reading read();

  std::shared_ptr<const Data> data_;
  Sampler sampler_;
  std::unique_ptr<Reader> reader_;  // null without reading ahead
};

}  // namespace accrue
