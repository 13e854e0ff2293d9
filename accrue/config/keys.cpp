// SPDX-License-Identifier: Apache-2.0
#include "accrue/config/keys.h"

#include <vector>

namespace accrue::config {

std::span<const Key> schema() {
  static const std::vector<Key> all = [] {
    std::vector<Key> joined;
    for (const std::span<const Key> part :
         {keys::of_data(), keys::of_model(), keys::of_batch(), keys::of_update(), keys::of_run()})
      joined.insert(joined.end(), part.begin(), part.end());
    return joined;
  }();
  return all;
}

}  // namespace accrue::config
