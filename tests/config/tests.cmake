accrue_test(config
  errors_test.cpp
  load_test.cpp
  number_test.cpp
  print_test.cpp
  schema_test.cpp
  slow_test.cpp)
if(TARGET test_config)
  target_link_libraries(test_config PRIVATE nlohmann_json::nlohmann_json)
endif()
