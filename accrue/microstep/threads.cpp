// SPDX-License-Identifier: Apache-2.0
#include "accrue/microstep/threads.h"

#include <ATen/Parallel.h>
#include <malloc.h>

#include "accrue/base/error.h"
#include "accrue/base/limits.h"
#include "accrue/base/messages/microstep.h"
#include "accrue/base/units.h"

namespace accrue {

void use_threads(int count) {
  // Else malloc reserves 64 MiB for each thread, and where that fails tries again each time.
  if (is_memory_limited()) ::mallopt(M_ARENA_MAX, 1);
  // Beside this one for each of LibTorch's pools, OpenMP's and the one that set_num_threads makes.
  constexpr int kPools = 2;
  const int wanted = kPools * (count - 1);
  const StartedThreads started = try_threads(wanted);
  const int possible = 1 + started.count / kPools;
  if (started.count < wanted && started.by_memory) {
    fail(message::no_room_for_threads,
         {{"threads", count},
          {"possible", possible},
          {"stack", format_bytes(static_cast<uint64_t>(kPools * thread_stack()))}});
  }
  if (started.count < wanted) {
    fail(message::no_more_threads, {{"threads", count}, {"possible", possible}, {"reason", started.reason}});
  }
  at::set_num_threads(count);
  at::parallel_for(0, count, 1, [](int64_t, int64_t) {});
}

}  // namespace accrue
