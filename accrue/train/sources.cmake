accrue_sources(torch train
  micro_step.cpp
  reference_steps.cpp
  split_step.cpp
  stream_step.cpp)
