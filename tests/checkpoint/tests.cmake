find_package(nlohmann_json REQUIRED)
accrue_test(checkpoint
  checkpoint_folder_test.cpp
  output_dir_test.cpp
  pending_checkpoint_test.cpp
  resume_test.cpp)
target_link_libraries(test_checkpoint PRIVATE nlohmann_json::nlohmann_json)
accrue_test(checkpoint_torch TORCH
  checkpoint_test.cpp
  restore_test.cpp)
if(TARGET test_checkpoint_torch)
  target_link_libraries(test_checkpoint_torch PRIVATE nlohmann_json::nlohmann_json)
endif()
