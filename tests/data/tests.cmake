accrue_test(data
  numbers_test.cpp
  table_test.cpp)
accrue_test(data_torch TORCH
  images_test.cpp
  load_test.cpp
  named_tensors_test.cpp
  shape_text_test.cpp
  tensor_data_test.cpp
  tensor_file_test.cpp
  tokens_test.cpp)
