accrue_test(formats
  atomic_file_test.cpp
  cifar_test.cpp
  csv_test.cpp
  damaged_files_test.cpp
  gzip_test.cpp
  idx_test.cpp
  image_bad_test.cpp
  image_resize_test.cpp
  image_test.cpp
  mapped_file_test.cpp
  safetensors_test.cpp
  strict_json_test.cpp
  token_file_test.cpp
  token_rows_test.cpp
  utf8_test.cpp)
find_package(JPEG REQUIRED)  # the tests make the files that are read
find_package(PNG REQUIRED)
target_link_libraries(test_formats PRIVATE JPEG::JPEG PNG::PNG)
