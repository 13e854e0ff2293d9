accrue_test(report
  compare_test.cpp
  console_test.cpp
  measure_test.cpp
  read_records_test.cpp
  record_file_test.cpp
  record_test.cpp
  run_record_test.cpp
  speed_loops_test.cpp
  speed_test.cpp
  strict_text_test.cpp
  text_test.cpp)
accrue_test(report_torch TORCH
  from_result_test.cpp
  measure_speed_test.cpp)
if(TARGET test_report_torch AND ACCRUE_OPENMP)
  target_compile_definitions(test_report_torch PRIVATE ACCRUE_TEST_OPENMP)
endif()
