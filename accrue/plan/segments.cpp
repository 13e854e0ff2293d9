// SPDX-License-Identifier: Apache-2.0
#include "accrue/plan/segments.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace accrue {
namespace {

constexpr size_t kMostExact = 20;

int64_t saved_by(std::span<const SegmentCost> segments, const std::vector<bool>& marked) {
  int64_t sum = 0;
  int64_t largest = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (!marked[i]) continue;
    sum += segments[i].bytes;
    largest = std::max(largest, segments[i].bytes);
  }
  return sum - largest;
}

/// Tries every subset; of equal times the fewest segments.
class Search {
 public:
  Search(std::span<const SegmentCost> segments, int64_t needed) : segments_(segments), needed_(needed) {
    visit(0, {});
  }

  uint32_t best() const noexcept { return best_; }

 private:
  struct Part {
    uint32_t marks = 0;
    int count = 0;
    int64_t sum = 0;
    int64_t largest = 0;
    double seconds = 0;
  };

  void visit(size_t segment, const Part& part) {
    if (part.seconds > seconds_) return;
    if (part.sum - part.largest >= needed_) {
      if (part.seconds == seconds_ && part.count >= count_) return;
      best_ = part.marks;
      seconds_ = part.seconds;
      count_ = part.count;
      return;  // more marks take more time
    }
    if (segment == segments_.size()) return;
    const SegmentCost& cost = segments_[segment];
    visit(segment + 1, {part.marks | uint32_t{1} << segment, part.count + 1, part.sum + cost.bytes,
                        std::max(part.largest, cost.bytes), part.seconds + cost.seconds});
    visit(segment + 1, part);
  }

  std::span<const SegmentCost> segments_;
  int64_t needed_;
  uint32_t best_ = 0;
  double seconds_ = std::numeric_limits<double>::infinity();
  int count_ = std::numeric_limits<int>::max();
};

double seconds_a_byte(const SegmentCost& segment) {
  return segment.bytes > 0 ? segment.seconds / static_cast<double>(segment.bytes)
                           : std::numeric_limits<double>::infinity();
}

std::vector<bool> choose_greedily(std::span<const SegmentCost> segments, int64_t needed) {
  std::vector<size_t> order(segments.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return seconds_a_byte(segments[a]) < seconds_a_byte(segments[b]);
  });
  std::vector<bool> marked(segments.size());
  for (size_t i = 0; i < order.size() && saved_by(segments, marked) < needed; ++i) marked[order[i]] = true;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return segments[a].seconds > segments[b].seconds; });
  for (const size_t segment : order) {
    if (!marked[segment]) continue;
    marked[segment] = false;
    marked[segment] = saved_by(segments, marked) < needed;
  }
  return marked;
}

}  // namespace

std::vector<bool> choose_segments(std::span<const SegmentCost> segments, int64_t needed_bytes) {
  std::vector<bool> marked(segments.size());
  if (needed_bytes <= 0) return marked;
  marked.flip();
  if (saved_by(segments, marked) < needed_bytes) return marked;
  if (segments.size() > kMostExact) return choose_greedily(segments, needed_bytes);
  const uint32_t best = Search(segments, needed_bytes).best();
  for (size_t i = 0; i < segments.size(); ++i) marked[i] = (best >> i & 1) != 0;
  return marked;
}

}  // namespace accrue
