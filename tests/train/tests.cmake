accrue_test(train TORCH
  batch_norm_test.cpp
  compiled_test.cpp
  loop_test.cpp
  reference_steps_test.cpp
  split_step_test.cpp
  stream_step_test.cpp
  token_steps_test.cpp
  update_features_test.cpp)
if(TARGET test_train)
  add_test(NAME train_micro_batch_1 COMMAND test_train)
  add_test(NAME train_plain COMMAND test_train)
  # Threads that spin while they wait are 20 times slower where other tests run beside this one.
  set_tests_properties(train PROPERTIES ENVIRONMENT OMP_WAIT_POLICY=passive)
  set_tests_properties(train_micro_batch_1 PROPERTIES TIMEOUT 600
                       ENVIRONMENT "ACCRUE_TEST_MICRO_BATCH=1;OMP_WAIT_POLICY=passive")
  set_tests_properties(train_plain PROPERTIES TIMEOUT 600 ENVIRONMENT "ACCRUE_NN=plain;OMP_WAIT_POLICY=passive")
endif()
