accrue_sources(core data
  numbers.cpp
  table.cpp
  table_fit.cpp
  table_json.cpp)
accrue_sources(torch data
  load.cpp
  load_csv.cpp
  load_fields.cpp
  named_tensors.cpp
  shape_text.cpp
  tensor_data.cpp
  tensor_file.cpp)
