// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "accrue/base/limits.h"

namespace accrue::memory {
namespace {

constexpr int64_t kSmallestRegion = int64_t{32} << 20;
constexpr int64_t kLargestRequest = int64_t{1} << 43;  // in pages it fits LargestTree

int64_t rounded_up(int64_t bytes, int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

int64_t memory_of_machine() {
  const int64_t pages = ::sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? pages * ::sysconf(_SC_PAGESIZE) : kSmallestRegion;
}

std::byte* map(int64_t bytes) {
  void* const start = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start == MAP_FAILED ? nullptr : static_cast<std::byte*>(start);
}

void unmap(std::byte* start, int64_t bytes) {
  if (bytes > 0) ::munmap(start, static_cast<size_t>(bytes));
}

/// Address space that starts at a chunk's border; null where the system refuses it.
std::byte* map_aligned(int64_t bytes) {
  const auto above_border = [](const std::byte* start) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(start) % Arena::kChunk);
  };
  std::byte* start = map(bytes);
  if (start == nullptr || above_border(start) == 0) return start;
  unmap(start, bytes);
  start = map(bytes + Arena::kChunk);
  if (start == nullptr) return nullptr;
  const int64_t head = Arena::kChunk - above_border(start);  // the whole chunk where it is aligned
  unmap(start, head);
  unmap(start + head + bytes, Arena::kChunk - head);
  return start + head;
}

}  // namespace

LargestTree::LargestTree(size_t num_leaves)
    : num_leaves_(std::bit_ceil(num_leaves)), largest_(2 * num_leaves_) {}

void LargestTree::set(size_t leaf, uint32_t value) noexcept {
  size_t node = num_leaves_ + leaf;
  largest_[node] = value;
  while (node > 1) {
    node /= 2;
    const uint32_t largest = std::max(largest_[2 * node], largest_[2 * node + 1]);
    if (largest_[node] == largest) return;
    largest_[node] = largest;
  }
}

int64_t LargestTree::first_at_least(uint32_t value) const noexcept {
  if (largest_[1] < value) return -1;
  size_t node = 1;
  while (node < num_leaves_) {
    node *= 2;
    if (largest_[node] < value) ++node;
  }
  return static_cast<int64_t>(node - num_leaves_);
}

class Arena::Region {
 public:
  /// `whole`: it is to be unmapped once it is free.
  Region(std::byte* base, int64_t size, bool whole)
      : base_(base),
        size_(size),
        whole_(whole),
        largest_(static_cast<size_t>(size / kChunk)),
        chunks_(static_cast<size_t>(size / kChunk), Chunk::empty) {
    ranges_.emplace(0, Range{size, true});
    refresh(0);
  }
  ~Region() { unmap(base_, size_); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  const std::byte* base() const noexcept { return base_; }
  bool may_go() const noexcept { return whole_ && ranges_.size() == 1 && ranges_.begin()->second.free; }

  std::optional<Place> find(int64_t size) noexcept {
    const int64_t chunk = largest_.first_at_least(pages(size));
    if (chunk < 0) return std::nullopt;
    auto range = ranges_.lower_bound(chunk * kChunk);
    while (!range->second.free || range->second.size < size) ++range;
    return place_at(range->first, size);
  }

  std::optional<Place> find_snug(int64_t size) noexcept {
    constexpr int64_t kSnug = 4;
    auto best = ranges_.end();
    for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
      if (!range->second.free || range->second.size < size || range->second.size > kSnug * size) continue;
      if (best == ranges_.end() || range->second.size < best->second.size) best = range;
    }
    if (best == ranges_.end()) best = std::prev(ranges_.end());
    if (!best->second.free || best->second.size < size) return std::nullopt;
    return place_at(best->first, size);
  }

  std::byte* take(const Place& place) {
    const auto range = ranges_.find(place.offset);
    const int64_t rest = range->second.size - place.size;
    if (rest > 0) ranges_.emplace(place.offset + place.size, Range{rest, true});
    range->second = {place.size, false};
    refresh(place.offset);
    if (rest > 0) refresh(place.offset + place.size);
    for (int64_t touched = first_chunk(place); touched <= last_chunk(place); ++touched)
      if (state(touched) == Chunk::empty) state(touched) = Chunk::partly;
    top_ = std::max(top_, last_chunk(place) + 1);
    return base_ + place.offset;
  }

  void give(const std::byte* start) noexcept {
    auto range = ranges_.find(start - base_);
    const int64_t offset = range->first;
    range->second.free = true;
    if (const auto next = std::next(range); next != ranges_.end() && next->second.free) {
      const int64_t gone = next->first;
      range->second.size += next->second.size;
      ranges_.erase(next);
      refresh(gone);
    }
    if (range != ranges_.begin() && std::prev(range)->second.free) {
      const auto before = std::prev(range);
      before->second.size += range->second.size;
      ranges_.erase(range);
      refresh(before->first);
    }
    refresh(offset);
  }

  int64_t trim(int64_t wanted, const Place* keep) noexcept {
    const int64_t keep_first = keep != nullptr ? first_chunk(*keep) : INT64_MAX;
    const int64_t keep_last = keep != nullptr ? last_chunk(*keep) : -1;
    int64_t given = 0;
    for (auto range = ranges_.rbegin(); range != ranges_.rend() && given < wanted; ++range) {
      if (!range->second.free) continue;
      const int64_t first = rounded_up(range->first, kChunk) / kChunk;
      const int64_t end = std::min(top_, (range->first + range->second.size) / kChunk);
      for (int64_t chunk = end - 1; chunk >= first && given < wanted; --chunk) {
        if (state(chunk) == Chunk::empty || (chunk >= keep_first && chunk <= keep_last)) continue;
        if (::madvise(base_ + chunk * kChunk, kChunk, MADV_DONTNEED) != 0) continue;  // locked in memory
        state(chunk) = Chunk::empty;
        given += kChunk;
      }
    }
    while (top_ > 0 && state(top_ - 1) == Chunk::empty) --top_;
    return given;
  }

  int64_t held() const noexcept {
    return (top_ - std::count(chunks_.begin(), chunks_.begin() + top_, Chunk::empty)) * kChunk;
  }

  int64_t untouched() noexcept {
    int64_t untouched = 0;
    for (int64_t chunk = 0; chunk < top_; ++chunk) {
      if (state(chunk) != Chunk::partly) continue;
      const int64_t bytes = untouched_of(chunk);
      if (bytes == 0) state(chunk) = Chunk::wholly;
      untouched += bytes;
    }
    return untouched;
  }

 private:
  struct Range {
    int64_t size;
    bool free;
  };
  enum class Chunk : uint8_t { empty, partly, wholly };  // what of it has been touched

  Place place_at(int64_t offset, int64_t size) noexcept {
    Place place{offset, size, 0, this};
    for (int64_t touched = first_chunk(place); touched <= last_chunk(place); ++touched)
      if (state(touched) == Chunk::empty) place.fresh += kChunk;
    return place;
  }

  static uint32_t pages(int64_t bytes) noexcept { return static_cast<uint32_t>(bytes / kPage); }
  static int64_t first_chunk(const Place& place) noexcept { return place.offset / kChunk; }
  static int64_t last_chunk(const Place& place) noexcept { return (place.offset + place.size - 1) / kChunk; }
  Chunk& state(int64_t chunk) noexcept { return chunks_[static_cast<size_t>(chunk)]; }

  /// Notes anew the largest free range that starts in the chunk of `offset`.
  void refresh(int64_t offset) noexcept {
    const int64_t chunk = offset / kChunk;
    int64_t largest = 0;
    for (auto range = ranges_.lower_bound(chunk * kChunk);
         range != ranges_.end() && range->first < (chunk + 1) * kChunk; ++range)
      if (range->second.free) largest = std::max(largest, range->second.size);
    largest_.set(static_cast<size_t>(chunk), pages(largest));
  }

  int64_t untouched_of(int64_t chunk) const noexcept {
    static const int64_t page = ::sysconf(_SC_PAGESIZE);
    std::array<unsigned char, kChunk / kPage> resident{};
    if (::mincore(base_ + chunk * kChunk, kChunk, resident.data()) != 0) return 0;
    return page * std::count_if(resident.begin(), resident.begin() + kChunk / page,
                                [](unsigned char flags) { return (flags & 1U) == 0; });
  }

  std::byte* base_;
  int64_t size_;
  bool whole_;
  std::map<int64_t, Range> ranges_;  // by offset; all of the region, free ones never side by side
  LargestTree largest_;              // by chunk, in pages
  std::vector<Chunk> chunks_;
  int64_t top_ = 0;  // chunks from here on are empty
};

Arena::Arena(const ArenaOptions& options) : options_(options) {}
Arena::~Arena() = default;

std::optional<Arena::Place> Arena::find(int64_t bytes, Fit fit) {
  if (bytes > kLargestRequest) return std::nullopt;
  const int64_t size = rounded_up(std::max<int64_t>(bytes, 1), kPage);
  const auto lowest = [&]() -> std::optional<Place> {
    for (const std::unique_ptr<Region>& region : regions_)
      if (const std::optional<Place> place = region->find(size)) return place;
    return std::nullopt;
  };
  if (fit == Fit::snug) {
    for (const std::unique_ptr<Region>& region : regions_)
      if (const std::optional<Place> place = region->find_snug(size)) return place;
  }
  if (const std::optional<Place> place = lowest()) return place;
  return grow(size) ? lowest() : std::nullopt;
}

std::byte* Arena::take(const Place& place) {
  std::byte* const start = place.region->take(place);
  held_ += place.fresh;
  return start;
}

void Arena::give(std::byte* start) noexcept {
  const auto above = std::upper_bound(regions_.begin(), regions_.end(), start,
                                      [](const std::byte* address, const std::unique_ptr<Region>& region) {
                                        return address < region->base();
                                      });
  (*std::prev(above))->give(start);
}

int64_t Arena::trim(int64_t wanted, const Place* keep) noexcept {
  int64_t given = 0;
  for (size_t i = regions_.size(); i-- > 0 && given < wanted;) {
    Region& region = *regions_[i];
    const bool kept = keep != nullptr && keep->region == &region;
    if (region.may_go() && !kept) {
      given += region.held();
      regions_.erase(regions_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      given += region.trim(wanted - given, kept ? keep : nullptr);
    }
  }
  held_ -= given;
  return given;
}

int64_t Arena::untouched() noexcept {
  int64_t untouched = 0;
  for (const std::unique_ptr<Region>& region : regions_) untouched += region->untouched();
  return untouched;
}

bool Arena::grow(int64_t bytes) {
  const bool limited = options_.just_enough || is_memory_limited();
  const int64_t large = options_.reserve > 0 ? options_.reserve : memory_of_machine();
  if (!limited && add_region(std::max(bytes, large), false)) return true;
  return add_region(std::max(bytes, kSmallestRegion), true) || add_region(bytes, true);
}

bool Arena::add_region(int64_t bytes, bool whole) {
  const int64_t size = rounded_up(bytes, kChunk);
  std::byte* const base = map_aligned(size);
  if (base == nullptr) return false;
  if (options_.huge_pages) static_cast<void>(::madvise(base, static_cast<size_t>(size), MADV_HUGEPAGE));
  auto region = [&] {
    try {
      return std::make_unique<Region>(base, size, whole);
    } catch (...) {
      unmap(base, size);
      throw;
    }
  }();
  const auto above = std::upper_bound(
      regions_.begin(), regions_.end(), base,
      [](const std::byte* address, const std::unique_ptr<Region>& other) { return address < other->base(); });
  regions_.insert(above, std::move(region));
  return true;
}

}  // namespace accrue::memory
