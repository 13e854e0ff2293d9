accrue_sources(core report
  compare.cpp
  compare_text.cpp
  console.cpp
  measure.cpp
  read_records.cpp
  record.cpp
  record_file.cpp
  run_record.cpp
  strict_text.cpp
  text.cpp)
accrue_sources(torch report
  from_result.cpp)
set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/report/run_record.cpp TARGET_DIRECTORY accrue_core
                            PROPERTIES COMPILE_DEFINITIONS ACCRUE_VERSION="${PROJECT_VERSION}")
