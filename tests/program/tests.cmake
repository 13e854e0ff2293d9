# The program as its users run it; plain Python, one ctest entry a file.
if(TARGET accrue_program)
  foreach(part commands data features limits memory models residual results resume train)
    add_test(NAME program_${part} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/program/${part}_test.py)
    set_tests_properties(program_${part} PROPERTIES TIMEOUT 900
      ENVIRONMENT "ACCRUE_PROGRAM=$<TARGET_FILE:accrue_program>;ACCRUE_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
  endforeach()
  accrue_test(program errors_test.cpp)
endif()
