// SPDX-License-Identifier: Apache-2.0
// Plain loops that show what a machine can do at best. Each call is one short burst on `threads` threads at
// once, timed from their common start to the last one's end; the best of several bursts is the machine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace accrue {

/// fp32 multiply-adds in registers for about `seconds`: operations a second, two a multiply-add. Of the
/// instruction sets that the processor has the one that is fastest: wider is not always.
double multiply_add_burst(int threads, double seconds);

/// Huge pages are asked for by madvise.
enum class Pages { small, huge };

/// Zeroed memory straight from the system, of which nothing has been touched yet; `bytes` are rounded up to
/// whole huge pages. Empty (data() is null) where the system has not so much.
class FreshMemory {
 public:
  FreshMemory(size_t bytes, Pages pages);
  ~FreshMemory();
  FreshMemory(const FreshMemory&) = delete;
  FreshMemory& operator=(const FreshMemory&) = delete;

  char* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
  void* mapped_ = nullptr;
  size_t mapped_size_ = 0;
};

/// Reads and writes all of `memory` once: bytes a second, read and written ones added. 0 for an empty one.
double stream_burst(const FreshMemory& memory, int threads);

/// Writes to every page of memory that the process has not had: bytes a second. 0 where there is none.
double fresh_burst(size_t bytes, Pages pages, int threads);

/// Bytes of an ordinary page.
size_t page_size() noexcept;

/// Bytes of the largest cache that the system tells of; 0 where it tells none.
size_t cache_size() noexcept;

}  // namespace accrue
