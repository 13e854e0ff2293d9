accrue_test(evaluate TORCH
  evaluate_test.cpp
  metric_test.cpp
  token_metrics_test.cpp)
