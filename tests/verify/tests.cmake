accrue_test(verify TORCH
  couplings_test.cpp
  exchange_test.cpp
  export_test.cpp
  gradient_run_test.cpp
  kept_state_test.cpp
  part_test.cpp
  verdict_test.cpp
  verify_faults_test.cpp
  verify_state_test.cpp
  verify_test.cpp)
if(TARGET test_verify)
  find_package(nlohmann_json REQUIRED)
  target_link_libraries(test_verify PRIVATE nlohmann_json::nlohmann_json)
endif()
