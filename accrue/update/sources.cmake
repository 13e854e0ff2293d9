accrue_sources(core update
  checks.cpp
  groups.cpp
  kernels.cpp
  kernels_baseline.cpp
  loss_scaler.cpp
  noise_scale.cpp
  schedule.cpp)
# All compilations must give the same bits: no contraction. The other flags change no value.
accrue_kernel_flags(update kernels -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp-simd)
if(ACCRUE_BUILDS_X86_KERNELS)
  accrue_sources(core update kernels_avx2.cpp kernels_avx512.cpp)
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
