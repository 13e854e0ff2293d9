if(TARGET accrue_models)
  accrue_test(models TORCH
    models_test.cpp
    weights_test.cpp)
  target_link_libraries(test_models PRIVATE accrue::models)
endif()
