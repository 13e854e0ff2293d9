accrue_test(formats
  atomic_file_test.cpp
  csv_test.cpp
  mapped_file_test.cpp
  safetensors_test.cpp
  strict_json_test.cpp
  utf8_test.cpp)
