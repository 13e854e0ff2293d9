accrue_sources(torch microstep
  context.cpp
  generator_scope.cpp
  loss.cpp
  losses.cpp
  model.cpp
  run.cpp
  slice.cpp
  type_name.cpp)
