accrue_sources(torch nn
  attention.cpp
  compute_type.cpp
  dropout.cpp
  functions.cpp
  layer.cpp
  recompute.cpp
  second_run.cpp
  segments.cpp)
