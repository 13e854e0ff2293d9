accrue_sources(core nn
  kernels.cpp
  kernels_baseline.cpp
  openblas.cpp
  row_losses.cpp
  small_products.cpp)
set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/nn/row_losses.cpp
                            ${PROJECT_SOURCE_DIR}/accrue/nn/small_products.cpp
  TARGET_DIRECTORY accrue_core PROPERTIES COMPILE_OPTIONS "-O3;-fno-math-errno")
# Fused multiply-adds only where the source says so: the same bits at every place. The other flags change no value.
accrue_kernel_flags(nn kernels -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math)
target_link_libraries(accrue_core PRIVATE ${CMAKE_DL_LIBS})
# Alone, since its path would keep another checkout from what ccache has of the others.
set_source_files_properties(${PROJECT_SOURCE_DIR}/accrue/nn/openblas.cpp TARGET_DIRECTORY accrue_core
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON COMPILE_DEFINITIONS "ACCRUE_OPENBLAS_FILE=\"${ACCRUE_OPENBLAS_FILE}\"")
if(ACCRUE_BUILDS_X86_KERNELS)
  accrue_sources(core nn kernels_avx2.cpp kernels_avx512.cpp)
endif()
accrue_sources(torch nn
  accelerate.cpp
  attention.cpp
  block.cpp
  chain_panels.cpp
  chain_run.cpp
  chain_step.cpp
  compute_type.cpp
  convolution.cpp
  convolution_columns.cpp
  convolution_winograd.cpp
  dropout.cpp
  embedding.cpp
  function.cpp
  functions.cpp
  gated.cpp
  group_norm.cpp
  head.cpp
  layer.cpp
  linear.cpp
  norm.cpp
  norm_rows.cpp
  parameter_gradient.cpp
  plain.cpp
  products.cpp
  random_stream.cpp
  recompute.cpp
  rotary.cpp
  row_passes.cpp
  second_run.cpp
  segment_attention.cpp
  segments.cpp
  shapes.cpp)
