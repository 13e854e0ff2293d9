// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/slabs.h"

#include <algorithm>
#include <bit>
#include <new>

namespace accrue::memory {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kPage = 4096;
constexpr int64_t kUsualSlab = 65536;
constexpr int64_t kFewestBlocks = 4;

struct FreeBlock {
  FreeBlock* next;
};

}  // namespace

/// Lies at the start of its memory.
struct alignas(kAlignment) Slabs::Slab {
  Slab* previous = nullptr;
  Slab* next = nullptr;
  FreeBlock* free = nullptr;   // blocks that came back
  std::byte* fresh = nullptr;  // from here on no block was ever taken
  std::byte* end = nullptr;
  int64_t num_taken = 0;
  int size_class = 0;

  bool has_room() const noexcept { return free != nullptr || fresh != end; }
};

int Slabs::class_of(int64_t bytes) noexcept {
  const auto last = static_cast<uint64_t>((bytes - 1) / kAlignment);
  if (last < 4) return static_cast<int>(last);
  const int octave = static_cast<int>(std::bit_width(last)) - 3;
  return 4 + 4 * octave + static_cast<int>((last >> octave) & 3U);
}

int64_t Slabs::size_of(int size_class) noexcept {
  if (size_class < 4) return (size_class + 1) * kAlignment;
  return static_cast<int64_t>(size_class % 4 + 5) * kAlignment << (size_class / 4 - 1);
}

int64_t Slabs::slab_bytes(int size_class) noexcept {
  const int64_t block = size_of(size_class);
  const int64_t count = std::max(kFewestBlocks, (kUsualSlab - static_cast<int64_t>(sizeof(Slab))) / block);
  return (static_cast<int64_t>(sizeof(Slab)) + count * block + kPage - 1) / kPage * kPage;
}

Slabs::Block Slabs::take(int size_class) noexcept {
  Slab* const slab = with_room_[static_cast<size_t>(size_class)];
  if (slab == nullptr) return {};
  std::byte* start = nullptr;
  if (slab->free != nullptr) {
    start = reinterpret_cast<std::byte*>(slab->free);
    slab->free = slab->free->next;
  } else {
    start = slab->fresh;
    slab->fresh += size_of(size_class);
  }
  ++slab->num_taken;
  if (!slab->has_room()) unlink(slab);
  return {start, slab};
}

void Slabs::add(int size_class, std::byte* memory) noexcept {
  Slab* const slab = new (memory) Slab;
  const int64_t block = size_of(size_class);
  const int64_t count = (slab_bytes(size_class) - static_cast<int64_t>(sizeof(Slab))) / block;
  slab->fresh = memory + sizeof(Slab);
  slab->end = slab->fresh + count * block;
  slab->size_class = size_class;
  link(slab);
}

std::byte* Slabs::give(std::byte* block, Slab* slab) noexcept {
  const bool had_room = slab->has_room();
  slab->free = new (block) FreeBlock{slab->free};
  --slab->num_taken;
  if (!had_room) link(slab);
  const bool alone = slab->previous == nullptr && slab->next == nullptr;
  if (slab->num_taken > 0 || alone) return nullptr;
  unlink(slab);
  return reinterpret_cast<std::byte*>(slab);
}

std::byte* Slabs::take_empty() noexcept {
  for (Slab* slab : with_room_) {
    for (; slab != nullptr; slab = slab->next) {
      if (slab->num_taken > 0) continue;
      unlink(slab);
      return reinterpret_cast<std::byte*>(slab);
    }
  }
  return nullptr;
}

void Slabs::link(Slab* slab) noexcept {
  Slab*& first = with_room_[static_cast<size_t>(slab->size_class)];
  slab->previous = nullptr;
  slab->next = first;
  if (first != nullptr) first->previous = slab;
  first = slab;
}

void Slabs::unlink(Slab* slab) noexcept {
  Slab*& first = with_room_[static_cast<size_t>(slab->size_class)];
  (slab->previous != nullptr ? slab->previous->next : first) = slab->next;
  if (slab->next != nullptr) slab->next->previous = slab->previous;
}

}  // namespace accrue::memory
