// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/code.h"

#include <link.h>
#include <sys/mman.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace accrue::memory {
namespace {

/// An entry of smaps, as far as it was read.
struct Entry {
  uintptr_t start = 0;
  uintptr_t end = 0;
  bool is_code = false;
  std::optional<int64_t> resident = {};  // in KiB, as the next two
  std::optional<int64_t> written = {};   // private copies in memory
  std::optional<int64_t> swapped = {};   // private copies that are not

  bool is_clean() const { return is_code && resident.value_or(0) > 0 && written == 0 && swapped == 0; }
};

/// Of a line such as "7f00-7f10 r-xp 00000000 08:01 1234  /usr/lib/libc.so.6".
std::optional<Entry> begun(const std::string& line) {
  unsigned long start = 0;
  unsigned long end = 0;
  unsigned long inode = 0;
  char rights[5] = {};
  // NOLINTNEXTLINE(cert-err34-c): the system's own numbers
  if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu", &start, &end, rights, &inode) != 4) return {};
  return Entry{.start = start, .end = end, .is_code = inode != 0 && std::string_view(rights) == "r-xp"};
}

void read_number(const std::string& line, const char* format, std::optional<int64_t>& number) {
  long long kibibytes = 0;
  if (std::sscanf(line.c_str(), format, &kibibytes) == 1) number = kibibytes;
}

struct Sweep {
  std::optional<std::vector<CleanCode>> found = {};
  int64_t released = 0;
};

/// Releases the code of one loaded object. The loader holds its lock, so that no address changes hands
/// between the reading and the release.
int release_of(dl_phdr_info* object, size_t, void* data) noexcept try {
  Sweep& sweep = *static_cast<Sweep*>(data);
  if (!sweep.found) {
    std::ifstream smaps("/proc/self/smaps");
    sweep.found = clean_code(smaps);
  }
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const uintptr_t start = object->dlpi_addr + segment.p_vaddr;
    const uintptr_t end = start + segment.p_memsz;
    for (const CleanCode& code : *sweep.found) {
      if (code.end <= start || code.start >= end) continue;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): an address out of a text
      if (::madvise(reinterpret_cast<void*>(code.start), code.end - code.start, MADV_DONTNEED) == 0)
        sweep.released += code.resident;
    }
  }
  return 0;
} catch (...) {
  return 1;
}

}  // namespace

std::vector<CleanCode> clean_code(std::istream& smaps) {
  constexpr int64_t kKibi = 1024;
  std::vector<CleanCode> all;
  Entry entry;
  const auto finish = [&] {
    if (entry.is_clean()) all.push_back({entry.start, entry.end, *entry.resident * kKibi});
  };
  for (std::string line; std::getline(smaps, line);) {
    if (const std::optional<Entry> next = begun(line)) {
      finish();
      entry = *next;
      continue;
    }
    read_number(line, "Rss: %lld kB", entry.resident);
    read_number(line, "Anonymous: %lld kB", entry.written);
    read_number(line, "Swap: %lld kB", entry.swapped);
  }
  finish();
  return all;
}

int64_t release_code() noexcept {
  Sweep sweep;
  ::dl_iterate_phdr(release_of, &sweep);
  return sweep.released;
}

}  // namespace accrue::memory
