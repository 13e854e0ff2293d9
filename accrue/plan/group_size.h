// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace accrue {

/// How a model takes samples of unequal size.
enum class Layout {
  end_to_end,  ///< laid end to end: a group costs the sum of its sizes
  padded,      ///< each as large as the largest of its group
};

/// What the cost of a group depends on. A sample's size is its tokens, or 1.
struct GroupSize {
  double samples = 0;
  double total = 0;    ///< sum of sizes; padded: samples times the largest
  double squares = 0;  ///< sum of squared sizes (attention); padded: samples times the largest, squared

  bool operator==(const GroupSize&) const = default;
};

/// All 0 without a sample.
GroupSize group_size(std::span<const int64_t> sizes, Layout layout);
/// The group with one sample more.
GroupSize with_sample(const GroupSize& group, int64_t size, Layout layout);

}  // namespace accrue
