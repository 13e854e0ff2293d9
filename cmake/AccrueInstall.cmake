# Installs the libraries, their headers, the program and the package files behind find_package(Accrue).
include(CMakePackageConfigHelpers)
set(ACCRUE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Accrue)

set(libraries accrue_core)
if(TARGET accrue)
  list(APPEND libraries accrue)
endif()
install(TARGETS ${libraries} EXPORT AccrueTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/accrue DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
install(EXPORT AccrueTargets NAMESPACE accrue:: DESTINATION ${ACCRUE_PACKAGE_DIR})

if(ACCRUE_BUILD_TORCH AND ACCRUE_BUILD_PROGRAM)
  get_property(program_targets DIRECTORY ${PROJECT_SOURCE_DIR}/cli PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${program_targets})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
  endforeach()
endif()
if(ACCRUE_BUILD_TORCH)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/AccrueTorch.cmake DESTINATION ${ACCRUE_PACKAGE_DIR})
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/AccrueConfig.cmake.in
  ${PROJECT_BINARY_DIR}/AccrueConfig.cmake INSTALL_DESTINATION ${ACCRUE_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/AccrueConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/AccrueConfig.cmake ${PROJECT_BINARY_DIR}/AccrueConfigVersion.cmake
        DESTINATION ${ACCRUE_PACKAGE_DIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/accrue)
