# How our own targets are compiled. Nothing here leaks to users of the library.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")  # what is hot (the kernels) asks for more by itself
endif()
# An installed program finds LibTorch where it was linked.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
find_program(ACCRUE_CCACHE ccache)
if(ACCRUE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the checkout, so that another checkout finds what this one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  ${ACCRUE_CCACHE})
endif()

# $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>: g++ 12 warns of std::string operations where nothing overlaps.
add_library(accrue_options INTERFACE)
target_compile_options(accrue_options INTERFACE -Wall -Wextra -Wshadow -Wno-unknown-pragmas $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${ACCRUE_WARNINGS_AS_ERRORS}>:-Werror>)
if(ACCRUE_SANITIZE)
  target_compile_options(accrue_options INTERFACE -fsanitize=${ACCRUE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(accrue_options INTERFACE -fsanitize=${ACCRUE_SANITIZE})
endif()
if(ACCRUE_COVERAGE)
  target_compile_options(accrue_options INTERFACE --coverage -fprofile-abs-path)
  target_link_options(accrue_options INTERFACE --coverage)
endif()

# accrue_sources(core|torch FOLDER files...): sources of one stage; they are compiled as one unit.
function(accrue_sources ring folder)
  set(target accrue_core)
  if(ring STREQUAL torch)
    set(target accrue)
  endif()
  if(NOT TARGET ${target})
    return()
  endif()
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/accrue/${folder}/)
  target_sources(${target} PRIVATE ${ARGN})
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${folder})
endfunction()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  set(ACCRUE_BUILDS_X86_KERNELS ON)
endif()

# accrue_kernel_flags(FOLDER NAME flags...): of NAME_baseline.cpp and, where they are built, NAME_avx2.cpp and NAME_avx512.cpp
# of a stage. NAME.cpp chooses, and learns by ACCRUE_HAVE_X86_KERNELS whether there is a choice.
function(accrue_kernel_flags folder name)
  set(path ${PROJECT_SOURCE_DIR}/accrue/${folder}/${name})
  set_source_files_properties(${path}_baseline.cpp TARGET_DIRECTORY accrue_core PROPERTIES COMPILE_OPTIONS "${ARGN}")
  if(ACCRUE_BUILDS_X86_KERNELS)
    set_source_files_properties(${path}_avx2.cpp TARGET_DIRECTORY accrue_core
      PROPERTIES COMPILE_OPTIONS "${ARGN};-mavx2;-mfma")
    set_source_files_properties(${path}_avx512.cpp TARGET_DIRECTORY accrue_core
      PROPERTIES COMPILE_OPTIONS "${ARGN};-mavx2;-mfma;-mavx512f;-mavx512dq;-mavx512bw;-mavx512vl")
    set_source_files_properties(${path}.cpp TARGET_DIRECTORY accrue_core
      PROPERTIES COMPILE_DEFINITIONS ACCRUE_HAVE_X86_KERNELS)
  endif()
endfunction()
