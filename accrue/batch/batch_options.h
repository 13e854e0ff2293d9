// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace accrue {

/// The order in which an epoch visits the samples.
enum class Order {
  file,      ///< as the data lie
  shuffled,  ///< a permutation that depends on seed and epoch alone
};

/// What happens to the samples at an epoch's end that do not fill a batch.
enum class LastBatch {
  flush,  ///< they are an update of their own weight
  drop,   ///< they are left out, and the record counts them
  error,  ///< a DataError before training starts
  carry,  ///< they open the next epoch's first batch
};

struct BatchOptions {
  int64_t size = 32;  ///< samples behind one update
  Order order = Order::shuffled;
  LastBatch last = LastBatch::flush;
};

}  // namespace accrue
