accrue_test(accumulate TORCH
  accumulate_options_test.cpp
  any_split_test.cpp
  gradient_buffer_test.cpp
  loss_scale_test.cpp
  peak_memory_test.cpp
  value_and_grad_test.cpp
  window_computed_test.cpp
  window_failure_test.cpp
  window_terms_test.cpp
  window_test.cpp)
# Once more with every micro-batch forced to one sample.
foreach(folder microstep accumulate)
  if(TARGET test_${folder})
    add_test(NAME ${folder}_micro_batch_1 COMMAND test_${folder})
    set_tests_properties(${folder}_micro_batch_1 PROPERTIES TIMEOUT 600 ENVIRONMENT ACCRUE_TEST_MICRO_BATCH=1)
  endif()
endforeach()
