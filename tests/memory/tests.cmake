accrue_test(memory
  ledger_test.cpp
  resident_test.cpp)
accrue_test(memory_torch TORCH
  live_bytes_test.cpp)
