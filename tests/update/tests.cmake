accrue_test(update
  checks_test.cpp
  groups_test.cpp
  kernels_test.cpp
  loss_scaler_test.cpp
  noise_scale_test.cpp
  schedule_test.cpp)
accrue_test(update_torch TORCH
  average_test.cpp
  chunks_test.cpp
  flat_optimizer_test.cpp
  golden_test.cpp
  half_sums_test.cpp
  loss_scale_test.cpp
  torch_optimizer_test.cpp
  updater_test.cpp)
if(TARGET test_update_torch)
  find_package(nlohmann_json REQUIRED)
  target_link_libraries(test_update_torch PRIVATE nlohmann_json::nlohmann_json)
endif()
