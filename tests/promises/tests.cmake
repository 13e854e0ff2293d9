find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME promises COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/promises/promises_test.py)
