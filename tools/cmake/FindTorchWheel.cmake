# SPDX-License-Identifier: Apache-2.0
#
# Imports libtorch from unpacked PyPI wheels or from an installed torch package, without torch's own
# CMake package (which insists on a CUDA compiler).
#
# Input:   STOWAGE_TORCH (variable or environment), else the torch of the Python that `pip install .`
#          installs into, else build/deps/torch-VERSION of this source tree, of the default.
#          Either the folder that holds torch/ and nvidia/cu13/, or the torch package itself.
# Targets: torch::c10, torch::gomp, torch::cpu (headers, libtorch_cpu, libc10);
#          torch::cuda only when libtorch_cuda.so is there (headers of a CUDA toolkit are not included).
# Not here: a toolkit, nvcc, anything Python.

# tools/dev has a list of wheels for each, runtime/torch/ a folder of what is its own.
set(STOWAGE_TORCH_VERSIONS 2.11.0 2.15.0)
set(STOWAGE_TORCH_DEFAULT 2.15.0)
# Those of them that build, but have not passed all tests: kUntestedTorches of tools/dev.
set(STOWAGE_TORCH_UNTESTED)

set(_torch_root "${STOWAGE_TORCH}")
if(NOT _torch_root)
  set(_torch_root "$ENV{STOWAGE_TORCH}")
endif()
if(NOT _torch_root AND SKBUILD)
  # `pip install .`: the environment that it installs into has torch, unless it builds elsewhere.
  execute_process(COMMAND "${Python_EXECUTABLE}" -c "import sysconfig; print(sysconfig.get_path('platlib'))"
    OUTPUT_VARIABLE _site OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(EXISTS "${_site}/torch/lib/libtorch_cpu.so")
    set(_torch_root "${_site}/torch")
  endif()
endif()
if(NOT _torch_root)
  set(_torch_root "${CMAKE_CURRENT_LIST_DIR}/../../build/deps/torch-${STOWAGE_TORCH_DEFAULT}")
endif()
get_filename_component(_torch_root "${_torch_root}" ABSOLUTE)
if(EXISTS "${_torch_root}/torch/lib/libtorch_cpu.so")
  set(TorchWheel_DIR_FOUND "${_torch_root}/torch")
elseif(EXISTS "${_torch_root}/lib/libtorch_cpu.so")
  set(TorchWheel_DIR_FOUND "${_torch_root}")
else()
  set(TorchWheel_DIR_FOUND "")
endif()

# Not the numbers in the headers: those of what came before a release are the release's.
set(TorchWheel_VERSION "")
if(TorchWheel_DIR_FOUND)
  set(_torch_said "")
  if(EXISTS "${TorchWheel_DIR_FOUND}/version.py")
    file(STRINGS "${TorchWheel_DIR_FOUND}/version.py" _torch_said REGEX "^__version__ = ")
  elseif(EXISTS "${TorchWheel_DIR_FOUND}/build-version")
    file(STRINGS "${TorchWheel_DIR_FOUND}/build-version" _torch_said LIMIT_COUNT 1)
  endif()
  if(_torch_said MATCHES "([0-9][^'+]*)")
    set(TorchWheel_VERSION "${CMAKE_MATCH_1}")
  endif()
  if(NOT TorchWheel_VERSION IN_LIST STOWAGE_TORCH_VERSIONS)
    list(JOIN STOWAGE_TORCH_VERSIONS " or " _torch_expected)
    set(_torch_advice "name one in STOWAGE_TORCH, or run tools/dev setup")
    if(TorchWheel_FIND_VERSION_EXACT)  # an installed Stowage, which is for one version
      set(_torch_expected "${TorchWheel_FIND_VERSION}, which Stowage was built for")
      set(_torch_advice "name it in STOWAGE_TORCH")
    endif()
    message(FATAL_ERROR "found torch '${TorchWheel_VERSION}' in ${TorchWheel_DIR_FOUND}, "
                        "expected ${_torch_expected}: ${_torch_advice}")
  endif()
  if(TorchWheel_VERSION IN_LIST STOWAGE_TORCH_UNTESTED AND SKBUILD)
    list(REMOVE_ITEM STOWAGE_TORCH_VERSIONS ${STOWAGE_TORCH_UNTESTED})
    list(JOIN STOWAGE_TORCH_VERSIONS " or " _torch_expected)
    message(FATAL_ERROR "found torch '${TorchWheel_VERSION}' in ${TorchWheel_DIR_FOUND}, which the Python package is "
                        "not for yet, expected ${_torch_expected}: name one in STOWAGE_TORCH")
  elseif(TorchWheel_VERSION IN_LIST STOWAGE_TORCH_UNTESTED)
    message(WARNING "torch ${TorchWheel_VERSION} has not passed all tests of Stowage: for development alone")
  endif()
endif()

# CMake prints the reason after another version than a consumer asks for as well.
if(TorchWheel_DIR_FOUND)
  set(_torch_reason "Stowage was built against that version: name one in STOWAGE_TORCH")
else()
  set(_torch_reason "no lib/libtorch_cpu.so below ${_torch_root}: run tools/dev setup, or set STOWAGE_TORCH, or configure with -DSTOWAGE_RUNTIME=OFF")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TorchWheel
  REQUIRED_VARS TorchWheel_DIR_FOUND
  VERSION_VAR TorchWheel_VERSION
  REASON_FAILURE_MESSAGE "${_torch_reason}")

if(TorchWheel_FOUND AND NOT TARGET torch::cpu)
  set(_torch_lib "${TorchWheel_DIR_FOUND}/lib")
  foreach(_torch_part c10 torch_cpu)
    add_library(torch::${_torch_part} SHARED IMPORTED GLOBAL)
    set_target_properties(torch::${_torch_part} PROPERTIES
      IMPORTED_LOCATION "${_torch_lib}/lib${_torch_part}.so")
  endforeach()
  # The wheel brings its own OpenMP runtime; a second one in the process would have its own threads.
  add_library(torch::gomp SHARED IMPORTED GLOBAL)
  set_target_properties(torch::gomp PROPERTIES
    IMPORTED_LOCATION "${_torch_lib}/libgomp.so.1"
    INTERFACE_COMPILE_OPTIONS "-fopenmp")

  add_library(torch::cpu INTERFACE IMPORTED GLOBAL)
  target_include_directories(torch::cpu SYSTEM INTERFACE
    "${TorchWheel_DIR_FOUND}/include" "${TorchWheel_DIR_FOUND}/include/torch/csrc/api/include")
  target_compile_definitions(torch::cpu INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  target_link_libraries(torch::cpu INTERFACE torch::torch_cpu torch::c10)
  # libtorch_cpu finds libcudart and libcupti through its own run path, beside which they are unpacked.
  target_link_options(torch::cpu INTERFACE "LINKER:--unresolved-symbols=ignore-in-shared-libs")

  if(EXISTS "${_torch_lib}/libtorch_cuda.so")
    foreach(_torch_part c10_cuda torch_cuda)
      add_library(torch::${_torch_part} SHARED IMPORTED GLOBAL)
      set_target_properties(torch::${_torch_part} PROPERTIES
        IMPORTED_LOCATION "${_torch_lib}/lib${_torch_part}.so")
    endforeach()
    add_library(torch::cuda INTERFACE IMPORTED GLOBAL)
    # Kernels register when the library loads, so it must stay needed although no symbol of it is used.
    target_link_options(torch::cuda INTERFACE "LINKER:--no-as-needed")
    target_link_libraries(torch::cuda INTERFACE torch::torch_cuda torch::c10_cuda torch::cpu)
  endif()
endif()
