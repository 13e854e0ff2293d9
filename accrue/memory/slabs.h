// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace accrue::memory {

/// Blocks of up to 64 KiB in size classes, four to a power of two from 256 bytes on, cut from slabs that the
/// caller provides. Blocks begin at multiples of 64 bytes. Not safe for threads.
class Slabs {
 public:
  static constexpr int64_t kLargest = 65536;  ///< bytes of a block
  static constexpr int kNumClasses = 36;

  static int class_of(int64_t bytes) noexcept;      ///< 1 <= bytes <= kLargest
  static int64_t size_of(int size_class) noexcept;  ///< bytes of its blocks
  static int64_t slab_bytes(int size_class) noexcept;

  struct Slab;
  struct Block {
    std::byte* start = nullptr;  ///< null: the class has no free block
    Slab* slab = nullptr;
  };
  Block take(int size_class) noexcept;
  /// Adds `slab_bytes(size_class)` bytes at a multiple of 64.
  void add(int size_class, std::byte* memory) noexcept;
  /// Returns the memory of a slab that became empty while its class has another with room, else null.
  std::byte* give(std::byte* block, Slab* slab) noexcept;
  /// Removes an empty slab and returns its memory; null where there is none.
  std::byte* take_empty() noexcept;

 private:
  void link(Slab* slab) noexcept;
  void unlink(Slab* slab) noexcept;

  std::array<Slab*, kNumClasses> with_room_ = {};  // the first of a list
};

}  // namespace accrue::memory
