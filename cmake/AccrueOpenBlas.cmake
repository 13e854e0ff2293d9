# Finds the OpenBLAS that the layers' products may use, as ACCRUE_OPENBLAS_FILE: ACCRUE_OPENBLAS, else the wheel beside
# LibTorch or in the project's .venv. The library is loaded when it is first needed; without one LibTorch multiplies.
file(GLOB _accrue_wheels "${Torch_DIR}/../../../../scipy_openblas32/lib/libscipy_openblas.so"
     "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/scipy_openblas32/lib/libscipy_openblas.so")
set(ACCRUE_OPENBLAS_FILE "")
if(ACCRUE_OPENBLAS)
  if(NOT EXISTS "${ACCRUE_OPENBLAS}")
    message(FATAL_ERROR "ACCRUE_OPENBLAS is ${ACCRUE_OPENBLAS}, and no file lies there; name a libopenblas.so, or leave it empty.")
  endif()
  set(ACCRUE_OPENBLAS_FILE "${ACCRUE_OPENBLAS}")
elseif(_accrue_wheels)
  list(GET _accrue_wheels 0 _accrue_wheel)
  get_filename_component(ACCRUE_OPENBLAS_FILE "${_accrue_wheel}" REALPATH)
endif()
if(ACCRUE_OPENBLAS_FILE)
  message(STATUS "OpenBLAS: ${ACCRUE_OPENBLAS_FILE}")
else()
  message(STATUS "OpenBLAS: none, so all products are LibTorch's")
endif()
