accrue_test(evaluate TORCH
  best_tracker_test.cpp
  evaluate_test.cpp
  metric_test.cpp
  token_metrics_test.cpp)
