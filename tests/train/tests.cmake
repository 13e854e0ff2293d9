accrue_test(train TORCH
  loop_test.cpp
  reference_steps_test.cpp
  split_step_test.cpp
  stream_step_test.cpp)
if(TARGET test_train)
  add_test(NAME train_micro_batch_1 COMMAND test_train)
  set_tests_properties(train_micro_batch_1 PROPERTIES ENVIRONMENT ACCRUE_TEST_MICRO_BATCH=1 TIMEOUT 600)
endif()
