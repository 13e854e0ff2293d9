accrue_sources(core evaluate
  best_tracker.cpp)
accrue_sources(torch evaluate
  evaluate.cpp
  metric.cpp
  token_metrics.cpp)
