accrue_sources(core nn
  kernels.cpp
  kernels_baseline.cpp
  row_losses.cpp
  small_products.cpp)
set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/nn/row_losses.cpp
                            ${PROJECT_SOURCE_DIR}/accrue/nn/small_products.cpp
  TARGET_DIRECTORY accrue_core PROPERTIES COMPILE_OPTIONS "-O3;-fno-math-errno")
# Fused multiply-adds only where the source says so: the same bits at every place. The other flags change no value.
set(layer_kernel_flags -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math)
set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/nn/kernels_baseline.cpp TARGET_DIRECTORY accrue_core
  PROPERTIES COMPILE_OPTIONS "${layer_kernel_flags}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  accrue_sources(core nn kernels_avx2.cpp)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/nn/kernels_avx2.cpp TARGET_DIRECTORY accrue_core
    PROPERTIES COMPILE_OPTIONS "${layer_kernel_flags};-mavx2;-mfma")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/nn/kernels.cpp TARGET_DIRECTORY accrue_core
    PROPERTIES COMPILE_DEFINITIONS ACCRUE_HAVE_AVX2_KERNELS)
endif()
accrue_sources(torch nn
  accelerate.cpp
  attention.cpp
  block.cpp
  chain_run.cpp
  chain_step.cpp
  compute_type.cpp
  convolution.cpp
  convolution_columns.cpp
  dropout.cpp
  embedding.cpp
  function.cpp
  functions.cpp
  group_norm.cpp
  gated.cpp
  head.cpp
  layer.cpp
  linear.cpp
  norm.cpp
  norm_rows.cpp
  parameter_gradient.cpp
  plain.cpp
  random_stream.cpp
  recompute.cpp
  rotary.cpp
  second_run.cpp
  segment_attention.cpp
  segments.cpp
  shapes.cpp)
