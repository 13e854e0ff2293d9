accrue_test(batch
  sampler_test.cpp)
accrue_test(batch_torch TORCH
  batch_test.cpp
  batcher_test.cpp
  pad_test.cpp
  select_test.cpp)
