// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace accrue::memory {

/// The leftmost of many values that is large enough, in logarithmic time.
class LargestTree {
 public:
  explicit LargestTree(size_t num_leaves);
  void set(size_t leaf, uint32_t value) noexcept;
  /// The first leaf with at least `value` (above 0), or -1.
  int64_t first_at_least(uint32_t value) const noexcept;

 private:
  size_t num_leaves_ = 1;  // a power of two
  std::vector<uint32_t> largest_;
};

struct ArenaOptions {
  int64_t reserve = 0;       ///< bytes of address space of a region; 0: the machine's memory
  bool huge_pages = true;    ///< asked for by madvise
  bool just_enough = false;  ///< regions of the size that is needed, given back whole; also where address
                             ///< space is limited (RLIMIT_AS, RLIMIT_DATA) or a large region is refused
};

/// Ranges of bytes in large regions of reserved address space, the lowest free one first, so that requests of
/// changing sizes use the same memory again. A region's chunks of 2 MiB count as held from the first range
/// that touches them until they are trimmed. Not safe for threads.
class Arena {
  class Region;

 public:
  static constexpr int64_t kPage = 4096;  ///< sizes are multiples of it
  static constexpr int64_t kChunk = int64_t{2} << 20;
  static constexpr int64_t kAll = INT64_MAX;

  explicit Arena(const ArenaOptions& options = {});
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// A free range, valid until the next take, give or trim of another place.
  struct Place {
    int64_t offset = 0;
    int64_t size = 0;   ///< bytes
    int64_t fresh = 0;  ///< bytes by which taking it raises `held`
    Region* region = nullptr;
  };
  enum class Fit : uint8_t {
    lowest,  ///< the lowest free range that is large enough
    snug,    ///< the smallest one of at most four times the bytes, else above all that is taken: for what
             ///< outlives its neighbours and would cut a large range in two
  };
  /// A free range of `bytes` rounded up to pages. Reserves a region where there is none; empty where the
  /// system refuses that.
  std::optional<Place> find(int64_t bytes, Fit fit = Fit::lowest);
  /// Takes it. The memory is zero only where it is fresh. May throw std::bad_alloc, with nothing changed.
  std::byte* take(const Place& place);
  /// Gives back what `take` returned.
  void give(std::byte* start) noexcept;

  /// Gives free chunks back to the system, the highest first, until `wanted` bytes are or none is left, but
  /// none of `keep`. Returns their bytes.
  int64_t trim(int64_t wanted = kAll, const Place* keep = nullptr) noexcept;

  /// For regions to come.
  void set_huge_pages(bool asked_for) noexcept { options_.huge_pages = asked_for; }
  int64_t held() const noexcept { return held_; }
  /// Bytes of held chunks that have never been touched, hence are not in the process's resident size.
  int64_t untouched() noexcept;
  size_t num_regions() const noexcept { return regions_.size(); }

 private:
  bool grow(int64_t bytes);
  bool add_region(int64_t bytes, bool whole);

  ArenaOptions options_;
  std::vector<std::unique_ptr<Region>> regions_;  // by address
  int64_t held_ = 0;
};

}  // namespace accrue::memory
