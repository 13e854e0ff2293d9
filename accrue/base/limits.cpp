// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/limits.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <system_error>
#include <vector>

namespace accrue {
namespace {

constexpr int64_t kAroundStack = int64_t{1} << 20;  // its guard, and what the thread keeps beside it

bool is_limited(int resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

void* wait_for(void* door) {
  const std::lock_guard open(*static_cast<std::mutex*>(door));
  return nullptr;
}

}  // namespace

bool is_memory_limited() {
  return is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA);
}

AddressSpace read_address_space() {
  int64_t all = 0, resident = 0, files = 0, code = 0, none = 0, writable = 0;
  std::ifstream("/proc/self/statm") >> all >> resident >> files >> code >> none >> writable;
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  return {all * page, writable * page};
}

bool has_room(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  void* const start =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return false;
  ::munmap(start, size);
  return true;
}

int64_t thread_stack() {
  pthread_attr_t attributes;
  size_t bytes = 0;
  if (::pthread_attr_init(&attributes) != 0) return 0;
  ::pthread_attr_getstacksize(&attributes, &bytes);
  ::pthread_attr_destroy(&attributes);
  return static_cast<int64_t>(bytes);
}

bool has_room_for_thread() {
  return has_room(thread_stack() + kAroundStack);
}

StartedThreads try_threads(int count) {
  StartedThreads started;
  std::vector<pthread_t> threads;
  threads.reserve(static_cast<size_t>(count));
  std::mutex door;
  std::unique_lock shut(door);
  for (; started.count < count; ++started.count) {
    pthread_t thread{};
    const int error_number = ::pthread_create(&thread, nullptr, wait_for, &door);
    if (error_number != 0) {
      started.reason = std::generic_category().message(error_number);
      started.by_memory = !has_room_for_thread();
      break;
    }
    threads.push_back(thread);
  }
  shut.unlock();
  for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  return started;
}

}  // namespace accrue
