accrue_sources(core plan
  by_size.cpp
  choice_file.cpp
  cost_model.cpp
  group_size.cpp
  headroom.cpp
  plan.cpp
  segments.cpp)
