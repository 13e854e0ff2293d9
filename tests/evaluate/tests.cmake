accrue_test(evaluate TORCH
  evaluate_test.cpp
  metric_test.cpp)
