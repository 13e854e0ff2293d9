accrue_test(task TORCH
  objective_test.cpp)
