if(TARGET accrue_models)
  accrue_test(models TORCH
    cnn_test.cpp
    gpt_test.cpp
    models_test.cpp
    recompute_test.cpp
    resnet_test.cpp
    weights_test.cpp)
  find_package(nlohmann_json REQUIRED)
  target_link_libraries(test_models PRIVATE accrue::models nlohmann_json::nlohmann_json)
  # Threads that spin while they wait are slow where other tests run beside this one.
  set_tests_properties(models PROPERTIES ENVIRONMENT OMP_WAIT_POLICY=passive)
endif()
