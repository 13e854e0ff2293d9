accrue_test(base
  count_test.cpp
  error_test.cpp
  nearest_test.cpp
  random_test.cpp
  threads_test.cpp
  units_test.cpp)
