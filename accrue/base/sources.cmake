accrue_sources(core base
  error.cpp
  log.cpp
  message.cpp
  nearest.cpp
  random.cpp
  threads.cpp
  units.cpp)
