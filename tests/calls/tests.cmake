# Wrong calls of the library, a test a row of bad_calls.h.
if(TARGET accrue_models)
  accrue_test(calls TORCH calls_test.cpp)
  target_link_libraries(test_calls PRIVATE accrue::models)
endif()
