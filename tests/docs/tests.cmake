# Both READMEs' commands, and the outputs that the pages quote.
if(TARGET accrue_program AND ACCRUE_BUILD_EXAMPLES)
  add_test(NAME docs COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/docs/docs_test.py)
  set_tests_properties(docs PROPERTIES TIMEOUT 600
    ENVIRONMENT "ACCRUE_BUILD_DIR=${PROJECT_BINARY_DIR};ACCRUE_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
endif()
