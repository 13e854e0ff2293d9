accrue_test(formats
  atomic_file_test.cpp
  csv_test.cpp
  image_bad_test.cpp
  image_resize_test.cpp
  image_test.cpp
  mapped_file_test.cpp
  safetensors_test.cpp
  strict_json_test.cpp
  utf8_test.cpp)
find_package(JPEG REQUIRED)  # the tests make the files that are read
find_package(PNG REQUIRED)
target_link_libraries(test_formats PRIVATE JPEG::JPEG PNG::PNG)
