// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "accrue/accumulate/gradient_buffer.h"
#include "accrue/update/kernels.h"

namespace accrue {

/// A run of neighbouring elements of one parameter.
struct Chunk {
  size_t entry = 0;   ///< of the gradient buffer
  int64_t begin = 0;  ///< elements from the parameter's first in memory
  int64_t size = 0;
  int64_t start = 0;  ///< elements of all chunks before this one
};

/// A gradient buffer cut into chunks of fixed size, and the passes over it. What a chunk gives does not
/// depend on the thread that runs it. The passes allocate nothing.
class Chunks {
 public:
  /// Throws DeviceError for a parameter that is not on the CPU.
  explicit Chunks(const GradientBuffer& gradients);

  /// What the reading pass found of the sums.
  struct Reading {
    double norm = 0;  ///< l2, before any division; infinite if it has no float64, NaN if not finite
    bool finite = true;
  };
  Reading read(const Kernels& kernels);
  /// After a reading that was not finite: up to five parameters whose gradients are not, and how many more.
  std::string non_finite_names() const;

  /// Looks up where gradients and parameters lie now. Throws StateError if a parameter's type or layout has
  /// changed.
  void locate();
  void* gradient(const Chunk& chunk) const { return at(gradients_at_, chunk); }
  void* parameter(const Chunk& chunk) const { return at(parameters_at_, chunk); }

  /// Calls `visit(chunk)` for every chunk, spread over the threads by elements.
  template <class Visit>
  void for_each(const Visit& visit) const {
    constexpr int64_t kSerialElements = 32 * 1024;  // below this, waking threads costs more than it saves
    const int64_t parts = num_elements_ <= kSerialElements ? 1 : at::get_num_threads();
    const auto run = [&](int64_t first, int64_t last) {
      const size_t end = boundary(last, parts);
      for (size_t i = boundary(first, parts); i < end; ++i) visit(chunks_[i]);
    };
    if (parts == 1) {
      run(0, 1);
    } else {
      at::parallel_for(0, parts, 1, run);
    }
  }

 private:
  struct Place {
    char* start = nullptr;
    int64_t element_bytes = 0;
  };

  static void* at(const std::vector<Place>& places, const Chunk& chunk) {
    return places[chunk.entry].start + chunk.begin * places[chunk.entry].element_bytes;
  }
  /// The first chunk of part `part` of `parts`.
  size_t boundary(int64_t part, int64_t parts) const;
  double sum_of_squares(const Kernels& kernels, double factor);

  const GradientBuffer& gradients_;
  std::vector<at::ScalarType> types_;  // of the parameters when this was made
  std::vector<Chunk> chunks_;
  std::vector<double> partial_sums_;  // one a chunk
  std::vector<Place> gradients_at_;   // one an entry
  std::vector<Place> parameters_at_;
  int64_t num_elements_ = 0;
  bool any_float64_ = false;
};

}  // namespace accrue
