# SPDX-License-Identifier: Apache-2.0
#
# Installs the CMake package: find_package(Stowage [COMPONENTS ir planner passes executor plan_file runtime session]).
# All but the components runtime and session need neither torch nor CUDA; all need LLVM's Support library.

include(CMakePackageConfigHelpers)

set(_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Stowage")
set(STOWAGE_PACKAGE_TORCH "")
if(STOWAGE_RUNTIME)
  set(STOWAGE_PACKAGE_TORCH "${TorchWheel_DIR_FOUND}")
endif()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/tools/cmake/StowageConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/package/StowageConfig.cmake"
  INSTALL_DESTINATION "${_package_dir}")
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/package/StowageConfigVersion.cmake" COMPATIBILITY SameMinorVersion)

install(FILES
  "${PROJECT_BINARY_DIR}/package/StowageConfig.cmake"
  "${PROJECT_BINARY_DIR}/package/StowageConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/tools/cmake/StowageLLVM.cmake"
  DESTINATION "${_package_dir}")
install(EXPORT StowageTargets NAMESPACE stowage:: DESTINATION "${_package_dir}")
if(STOWAGE_RUNTIME)
  install(FILES "${PROJECT_SOURCE_DIR}/tools/cmake/FindTorchWheel.cmake" DESTINATION "${_package_dir}")
  install(EXPORT StowageRuntimeTargets NAMESPACE stowage:: DESTINATION "${_package_dir}")
endif()
