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
if(TARGET test_nn)
  add_test(NAME nn_plain COMMAND test_nn)
  set_tests_properties(nn_plain PROPERTIES TIMEOUT 600 ENVIRONMENT ACCRUE_NN=plain)
  add_test(NAME nn_products_of_torch COMMAND test_nn)
  set_tests_properties(nn_products_of_torch PROPERTIES TIMEOUT 600 ENVIRONMENT ACCRUE_PRODUCTS=torch)
endif()
