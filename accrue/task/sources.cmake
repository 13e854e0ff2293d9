accrue_sources(torch task
  objective.cpp)
