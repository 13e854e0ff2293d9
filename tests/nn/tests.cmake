accrue_test(nn TORCH
  accelerate_test.cpp
  attention_test.cpp
  chain_test.cpp
  dropout_test.cpp
  fast_test.cpp
  functions_test.cpp
  images_test.cpp
  products_test.cpp
  recompute_test.cpp)
