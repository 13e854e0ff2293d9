accrue_test(memory
  arena_test.cpp
  code_test.cpp
  ledger_test.cpp
  machine_test.cpp
  pool_test.cpp
  pressure_test.cpp
  process_pool_test.cpp
  resident_test.cpp
  slabs_test.cpp)
accrue_test(memory_torch TORCH
  device_test.cpp
  live_bytes_test.cpp)
accrue_test(memory_torch_installed TORCH
  allocator_test.cpp)
accrue_test(memory_torch_other TORCH
  other_allocator_test.cpp)
