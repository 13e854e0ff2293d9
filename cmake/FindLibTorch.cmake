# Finds LibTorch: ACCRUE_TORCH (variable or environment), Torch_DIR, then the project's .venv.
set(_torch_hint "${ACCRUE_TORCH}")
if(NOT _torch_hint AND DEFINED ENV{ACCRUE_TORCH})
  set(_torch_hint "$ENV{ACCRUE_TORCH}")
endif()
if(NOT _torch_hint AND NOT Torch_DIR)
  file(GLOB _torch_hint ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
endif()
find_package(Torch REQUIRED HINTS ${_torch_hint})
