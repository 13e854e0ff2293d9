accrue_sources(torch train
  loop.cpp
  micro_step.cpp
  reference_steps.cpp
  split_step.cpp
  stream_step.cpp)
