accrue_sources(core config
  keys.cpp
  load.cpp
  number.cpp
  paths.cpp
  print.cpp
  read_tree.cpp
  read_value.cpp
  reference.cpp
  resolve.cpp
  resolve_batch.cpp
  schema.cpp
  suggest.cpp
  templates.cpp
  tree.cpp
  value.cpp)
