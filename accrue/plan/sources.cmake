accrue_sources(core plan
  by_size.cpp
  choice_file.cpp
  cost_model.cpp
  group_size.cpp
  plan.cpp
  segments.cpp)
