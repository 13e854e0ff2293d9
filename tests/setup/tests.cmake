# What configure says about a LibTorch, and what tools/setup does to a machine.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(name libtorch setup)
  add_test(NAME setup_${name} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/setup/${name}_test.py)
  set_tests_properties(setup_${name} PROPERTIES TIMEOUT 300)
endforeach()
