accrue_sources(core formats
  atomic_file.cpp
  csv.cpp
  foreign.cpp
  mapped_file.cpp
  safetensors.cpp
  safetensors_writer.cpp
  strict_json.cpp
  utf8.cpp)
