accrue_sources(core update
  checks.cpp
  groups.cpp
  kernels.cpp
  kernels_baseline.cpp
  loss_scaler.cpp
  noise_scale.cpp
  schedule.cpp)
# Both compilations must give the same bits: no contraction. The other flags change no value.
set(update_kernel_flags -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp-simd)
set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/update/kernels_baseline.cpp TARGET_DIRECTORY accrue_core
  PROPERTIES COMPILE_OPTIONS "${update_kernel_flags}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  accrue_sources(core update kernels_avx2.cpp)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/update/kernels_avx2.cpp TARGET_DIRECTORY accrue_core
    PROPERTIES COMPILE_OPTIONS "${update_kernel_flags};-mavx2;-mfma")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/update/kernels.cpp TARGET_DIRECTORY accrue_core
    PROPERTIES COMPILE_DEFINITIONS ACCRUE_HAVE_AVX2_KERNELS)
endif()
accrue_sources(torch update
  average.cpp
  chunks.cpp
  flat_optimizer.cpp
  tensor_text.cpp
  torch_optimizer.cpp
  torch_optimizer_state.cpp
  updater.cpp
  updater_apply.cpp
  updater_state.cpp)
