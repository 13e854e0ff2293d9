accrue_test(nn TORCH
  attention_test.cpp
  dropout_test.cpp
  functions_test.cpp
  recompute_test.cpp)
