accrue_sources(core memory
  ledger.cpp
  resident.cpp)
accrue_sources(torch memory
  live_bytes.cpp)
