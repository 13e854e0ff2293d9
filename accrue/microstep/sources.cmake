accrue_sources(torch microstep
  batch_norm.cpp
  context.cpp
  generator_scope.cpp
  loss.cpp
  losses.cpp
  model.cpp
  next_tokens.cpp
  run.cpp
  slice.cpp
  threads.cpp
  token_losses.cpp
  type_name.cpp)
