accrue_test(nn_kernels
  activations_test.cpp
  attention_test.cpp
  cross_entropy_test.cpp
  group_norm_test.cpp
  panels_test.cpp
  rows_test.cpp
  winograd_test.cpp)
