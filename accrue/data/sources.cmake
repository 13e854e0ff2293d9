accrue_sources(torch data
  named_tensors.cpp)
