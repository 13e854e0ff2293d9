accrue_test(base
  error_test.cpp
  nearest_test.cpp)
