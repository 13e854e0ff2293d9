// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>

#include "accrue/plan/group_size.h"

namespace accrue {

/// Bytes or seconds of a group as a sum: constant + a samples + b total + c squares, no coefficient below 0,
/// fitted to what was measured by least squares of the relative differences (a sum of few non-negative terms:
/// every subset of them is tried, Lawson and Hanson 1974). Of fits that are equally good the one of the
/// fewest terms stands, so features that what was measured does not tell apart (all samples of one size) are
/// left out, the first of total, samples, squares, constant staying. Of samples of one size the values
/// between two that were measured are on the line between them, and beyond the largest on the line through
/// the last two, since a peak is a largest of sums rather than a sum.
class CostModel {
 public:
  /// Takes a measured value; one that is no finite number of at least 0 is left out. The 64 distinct sizes
  /// measured last are kept; of a size that was measured before, `keep_smallest` decides between the smallest
  /// and the largest value.
  void add(const GroupSize& size, double value);
  explicit CostModel(bool keep_smallest = false) : keep_smallest_(keep_smallest) {}
  /// From now on a group of at least so many samples counts as one of whole multiples of them, which its
  /// micro-step is filled up to; 1: none is.
  void fill_to(int64_t samples);

  bool is_fitted() const noexcept { return !points_.empty(); }
  /// 0 where nothing was measured.
  double predict(const GroupSize& size) const noexcept;
  /// |predicted - measured| / measured of the values above 0 that were predicted before they were added, the
  /// largest and the mean; 0 without any. Predicted is a size whose features are sums of multiples of those
  /// measured before (of at most a million times them, beyond which their rounding would show): of samples of
  /// one size the third distinct group, of others as a rule the fifth.
  double largest_error() const noexcept { return largest_error_; }
  double mean_error() const noexcept {
    return num_errors_ == 0 ? 0 : sum_errors_ / static_cast<double>(num_errors_);
  }
  int64_t num_predicted() const noexcept { return num_errors_; }
  /// constant, of samples, of total, of squares.
  const std::array<double, 4>& coefficients() const noexcept { return coefficients_; }

  /// The points and errors as a JSON object, and back (ArgumentError for anything else).
  std::string to_json() const;
  static CostModel from_json(const std::string& text);

 private:
  struct Point {
    GroupSize size;
    double value = 0;
  };
  GroupSize filled(const GroupSize& size) const noexcept;
  struct Rows;
  Rows rows() const;
  bool is_within_reach(const GroupSize& size, double value) const;
  void fit();
  bool is_on_line(const GroupSize& size) const noexcept;
  double between(double samples) const noexcept;

  bool keep_smallest_;
  double filled_to_ = 1;  // samples
  std::deque<Point> points_;
  std::array<double, 4> coefficients_ = {};
  double largest_error_ = 0;
  double sum_errors_ = 0;
  int64_t num_errors_ = 0;
  int rank_ = 0;          // features that the points tell apart
  bool is_line_ = false;  // samples of one size alone
};

}  // namespace accrue
