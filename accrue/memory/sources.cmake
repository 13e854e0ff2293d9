accrue_sources(core memory
  arena.cpp
  code.cpp
  ledger.cpp
  machine.cpp
  pool.cpp
  pressure.cpp
  process_pool.cpp
  resident.cpp
  slabs.cpp)
accrue_sources(torch memory
  allocator.cpp
  device.cpp
  live_bytes.cpp
  refusal.cpp)
