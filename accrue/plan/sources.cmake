accrue_sources(core plan
  plan.cpp)
