accrue_test(microstep TORCH
  batch_norm_test.cpp
  generator_scope_test.cpp
  loss_test.cpp
  losses_segment_test.cpp
  losses_test.cpp
  losses_token_test.cpp
  model_test.cpp
  module_adapter_test.cpp
  run_test.cpp
  slice_test.cpp)
