accrue_sources(torch evaluate
  evaluate.cpp
  metric.cpp
  token_metrics.cpp)
