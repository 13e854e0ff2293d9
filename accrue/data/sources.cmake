accrue_sources(core data
  numbers.cpp
  table.cpp
  table_fit.cpp
  table_json.cpp)
accrue_sources(torch data
  find_format.cpp
  image_data.cpp
  image_folder.cpp
  load.cpp
  load_csv.cpp
  load_fields.cpp
  load_image_fields.cpp
  load_images.cpp
  load_tokens.cpp
  named_tensors.cpp
  pixel_files.cpp
  pixels.cpp
  shape_text.cpp
  subset_data.cpp
  tensor_data.cpp
  tensor_file.cpp
  token_arrays.cpp
  token_data.cpp)
