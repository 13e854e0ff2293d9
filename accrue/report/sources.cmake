accrue_sources(core report
  compare.cpp
  compare_text.cpp
  console.cpp
  measure.cpp
  read_records.cpp
  record.cpp
  record_file.cpp
  run_record.cpp
  speed.cpp
  speed_loops.cpp
  speed_loops_baseline.cpp
  strict_text.cpp
  text.cpp)
# Contraction is what makes a multiply-add of a product and a sum.
set(speed_loop_flags -O3 -ffp-contract=fast)
set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/report/speed_loops_baseline.cpp TARGET_DIRECTORY accrue_core
  PROPERTIES COMPILE_OPTIONS "${speed_loop_flags}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  accrue_sources(core report speed_loops_avx2.cpp)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/report/speed_loops_avx2.cpp TARGET_DIRECTORY accrue_core
    PROPERTIES COMPILE_OPTIONS "${speed_loop_flags};-mavx2;-mfma")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/report/speed_loops.cpp TARGET_DIRECTORY accrue_core
    PROPERTIES COMPILE_DEFINITIONS ACCRUE_HAVE_AVX2_SPEED_LOOPS)
endif()
accrue_sources(torch report
  from_result.cpp
  measure_speed.cpp)
set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/report/run_record.cpp TARGET_DIRECTORY accrue_core
                            PROPERTIES COMPILE_DEFINITIONS ACCRUE_VERSION="${PROJECT_VERSION}")
