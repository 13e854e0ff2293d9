accrue_sources(core base
  checksum.cpp
  error.cpp
  interrupt.cpp
  limits.cpp
  log.cpp
  message.cpp
  nearest.cpp
  processor.cpp
  random.cpp
  threads.cpp
  units.cpp)
