// SPDX-License-Identifier: Apache-2.0
// What the system's limits leave to this process, asked before a library meets them: OpenBLAS and OpenMP end
// the process without a word to its caller.
#pragma once

#include <cstdint>
#include <string>

namespace accrue {

/// Whether a limit stands on the process's address space (ulimit -v) or data (ulimit -d).
bool is_memory_limited();

/// What the process has mapped, in bytes, touched or not; 0 where the system does not tell.
struct AddressSpace {
  int64_t all = 0;
  int64_t writable = 0;  ///< and private
};
AddressSpace read_address_space();

/// Whether the system would map so many bytes more; nothing stays mapped.
bool has_room(int64_t bytes);

/// Of a thread that is started without a word about it.
int64_t thread_stack();

/// Whether there is room for one more thread's stack and what lies around it.
bool has_room_for_thread();

/// Threads that could be started.
struct StartedThreads {
  int count = 0;
  std::string reason = {};  ///< of the system, where they are fewer than asked for
  bool by_memory = false;   ///< whether the next one's stack found no room
};

/// Starts `count` threads beside this one, all alive at once, and ends them again.
StartedThreads try_threads(int count);

}  // namespace accrue
