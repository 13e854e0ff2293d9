accrue_test(plan
  by_size_test.cpp
  choice_file_test.cpp
  cost_model_test.cpp
  group_size_test.cpp
  headroom_test.cpp
  plan_test.cpp
  segments_test.cpp)
