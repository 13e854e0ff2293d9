// SPDX-License-Identifier: Apache-2.0
// Stage 2: takes files, gives samples: named tensors with an id (their index).
#pragma once

#include <cstdint>
#include <span>

#include "accrue/data/named_tensors.h"

namespace accrue {

/// Samples that can be asked for by index. Derive from it for a source of your own. Sequences of any length
/// are given laid end to end beside a field "offsets" (see Batch).
class Data {
 public:
  virtual ~Data() = default;

  /// The number of samples.
  virtual int64_t size() const = 0;
  /// What `Batch::sizes` says of a sample that was gathered: its tokens where they are laid end to end,
  /// else 1.
  virtual int64_t sample_size(int64_t id) const {
    static_cast<void>(id);
    return 1;
  }
  /// The samples `ids` (each in [0, size())), in that order: every field is [ids.size(), ...].
  /// May be called from several threads at once (training reads ahead while an evaluation reads); the same
  /// ids give the same values.
  virtual NamedTensors gather(std::span<const int64_t> ids) const = 0;
  /// The same for training in these epochs (from 0, one a sample): data that augments its samples does it
  /// here, by randomness that depends on seed, epoch and sample id alone.
  virtual NamedTensors gather_for_training(std::span<const int64_t> ids,
                                           std::span<const int64_t> epochs) const {
    static_cast<void>(epochs);
    return gather(ids);
  }
};

}  // namespace accrue
