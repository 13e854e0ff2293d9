accrue_sources(torch accumulate
  direct.cpp
  gradient_buffer.cpp
  value_and_grad.cpp
  window.cpp
  window_computed.cpp
  window_end.cpp
  window_state.cpp)
