# SPDX-License-Identifier: Apache-2.0
#
# cmake -DROOT= -DSCRATCH= -P find_torch.cmake
# A torch that is not supported is refused where it is looked for, in a line that says what to do.

# Fails unless `text` has `expected` in it; line breaks are CMake's own.
function(expect_in text expected)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  string(FIND "${text}" "${expected}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "found: ${text}\nexpected in it: ${expected}")
  endif()
endfunction()

# What configuring says of a torch in `torch` that calls itself `version`.
function(look_for torch version said)
  file(WRITE "${torch}/lib/libtorch_cpu.so" "")
  file(WRITE "${torch}/version.py" "from typing import Optional\n__version__ = '${version}+cu130'\n")
  file(WRITE "${SCRATCH}/find.cmake"
    "cmake_minimum_required(VERSION 3.25)\nset(STOWAGE_TORCH \"${torch}\")\n"
    "include(\"${ROOT}/tools/cmake/FindTorchWheel.cmake\")\n")
  execute_process(COMMAND "${CMAKE_COMMAND}" -P "${SCRATCH}/find.cmake"
    OUTPUT_QUIET ERROR_VARIABLE text)
  set(${said} "${text}" PARENT_SCOPE)
endfunction()

file(STRINGS "${ROOT}/tools/cmake/FindTorchWheel.cmake" line REGEX "^set.STOWAGE_TORCH_VERSIONS ")
string(REGEX MATCHALL "[0-9]+[.][0-9]+[.][0-9]+" supported "${line}")
list(JOIN supported " or " expected)
set(torch "${SCRATCH}/torch")
foreach(version 2.9.0 2.11.1 2.15.0.dev20260901 2.15.0a0)
  file(REMOVE_RECURSE "${SCRATCH}")
  set(refused "found torch '${version}' in ${torch}, expected ${expected}: name one in STOWAGE_TORCH, or run tools/dev setup")
  look_for("${torch}" ${version} text)
  expect_in("${text}" "${refused}")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env "STOWAGE_TORCH=${torch}" "${ROOT}/tools/dev" setup
    RESULT_VARIABLE code ERROR_VARIABLE text)
  if(NOT code EQUAL 4)
    message(FATAL_ERROR "tools/dev setup ended with ${code}, expected 4: ${text}")
  endif()
  expect_in("${text}" "error: found torch '${version}' in STOWAGE_TORCH=${torch}, expected ${expected}: unset it to download one")
endforeach()

# A supported one goes on; making targets is more than a script may do.
foreach(version ${supported})
  look_for("${torch}" ${version} text)
  expect_in("${text}" "add_library command is not scriptable")
endforeach()
file(REMOVE_RECURSE "${SCRATCH}")
