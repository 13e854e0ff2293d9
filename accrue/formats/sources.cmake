accrue_sources(core formats
  atomic_file.cpp
  csv.cpp
  foreign.cpp
  image.cpp
  image_exif.cpp
  image_jpeg.cpp
  image_png.cpp
  image_resize.cpp
  mapped_file.cpp
  safetensors.cpp
  safetensors_writer.cpp
  strict_json.cpp
  utf8.cpp)
