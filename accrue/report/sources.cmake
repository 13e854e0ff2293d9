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
accrue_kernel_flags(report speed_loops -O3 -ffp-contract=fast)
if(ACCRUE_BUILDS_X86_KERNELS)
  accrue_sources(core report speed_loops_avx2.cpp speed_loops_avx512.cpp)
endif()
accrue_sources(torch report
  from_result.cpp
  measure_speed.cpp)
set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/report/run_record.cpp TARGET_DIRECTORY accrue_core
                            PROPERTIES COMPILE_DEFINITIONS ACCRUE_VERSION="${PROJECT_VERSION}")
