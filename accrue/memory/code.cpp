// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/code.h"

#include <sys/mman.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace accrue::memory {
namespace {

/// One entry of /proc/self/smaps.
struct Mapping {
  uintptr_t start = 0;
  uintptr_t end = 0;
  bool is_code_of_file = false;
  int64_t resident = 0;
  int64_t written = 0;  // private copies, which are nowhere else
};

/// Whether the line begins an entry: "7f00-7f10 r-xp 00000000 08:01 1234  /usr/lib/libc.so.6".
bool begins(const std::string& line, Mapping& mapping) {
  unsigned long start = 0;
  unsigned long end = 0;
  unsigned long inode = 0;
  char rights[5] = {};
  if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu", &start, &end, rights, &inode) != 4) return false;
  mapping = {.start = start, .end = end, .is_code_of_file = inode != 0 && std::string_view(rights) == "r-xp"};
  return true;
}

int64_t release(const Mapping& mapping) noexcept {
  if (!mapping.is_code_of_file || mapping.written > 0 || mapping.resident == 0) return 0;
  void* const start = reinterpret_cast<void*>(mapping.start);
  return ::madvise(start, mapping.end - mapping.start, MADV_DONTNEED) == 0 ? mapping.resident : 0;
}

}  // namespace

int64_t release_code() noexcept try {
  constexpr int64_t kKibi = 1024;
  int64_t released = 0;
  Mapping mapping;
  std::ifstream file("/proc/self/smaps");
  for (std::string line; std::getline(file, line);) {
    long long kibibytes = 0;
    if (std::sscanf(line.c_str(), "Rss: %lld kB", &kibibytes) == 1) {
      mapping.resident = kibibytes * kKibi;
    } else if (std::sscanf(line.c_str(), "Anonymous: %lld kB", &kibibytes) == 1) {
      mapping.written = kibibytes;
      released += release(mapping);
      mapping = {};
    } else {
      begins(line, mapping);
    }
  }
  return released;
} catch (...) {
  return 0;
}

}  // namespace accrue::memory
