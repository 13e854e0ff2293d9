find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME structure COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/structure/structure_test.py
                                ${PROJECT_SOURCE_DIR})
add_test(NAME structure_self_test COMMAND ${Python3_EXECUTABLE}
                                          ${CMAKE_CURRENT_SOURCE_DIR}/structure/structure_test.py --self-test)
add_test(NAME docs_links COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_docs ${PROJECT_SOURCE_DIR})
