# SPDX-License-Identifier: Apache-2.0
#
# Finds every third-party library once and gives each one target name. Nothing is downloaded here.

include(StowageLLVM)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)

# Header-only libraries without a dependable CMake package.
function(stowage_header_library name header)
  find_path(${name}_INCLUDE_DIR ${header} REQUIRED)
  add_library(stowage::${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(stowage::${name} SYSTEM INTERFACE "${${name}_INCLUDE_DIR}")
endfunction()
stowage_header_library(xxhash xxhash.h)
target_compile_definitions(stowage::xxhash INTERFACE XXH_INLINE_ALL)

if(STOWAGE_RUNTIME)
  find_package(TorchWheel REQUIRED)
endif()

if(STOWAGE_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  find_package(benchmark REQUIRED)
endif()
