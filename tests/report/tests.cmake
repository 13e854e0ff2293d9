accrue_test(report
  console_test.cpp
  record_file_test.cpp
  record_test.cpp
  text_test.cpp)
accrue_test(report_torch TORCH
  from_result_test.cpp)
