# SPDX-License-Identifier: Apache-2.0
#
# cmake -DBUILD_DIR= -DSCRATCH_DIR= -DSOURCE_DIR= -DGENERATOR= -DCXX_COMPILER= -DLLVM_DIR= -DSANITIZE= -DRUNTIME= -DREADELF= -P run.cmake
# Installs BUILD_DIR below SCRATCH_DIR, then builds and runs the project in SOURCE_DIR against it, and
# the one in SOURCE_DIR/training when the part with libtorch was built (RUNTIME).

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${result}:\n${output}")
  endif()
endfunction()

set(flags "")
if(SANITIZE)
  set(flags "-fsanitize=${SANITIZE}")
endif()

file(REMOVE_RECURSE "${SCRATCH_DIR}")
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${SCRATCH_DIR}/prefix)
run(${CMAKE_COMMAND} "-DFOLDERS=${SCRATCH_DIR}/prefix/bin;${SCRATCH_DIR}/prefix/lib" -DREADELF=${READELF}
    -P ${CMAKE_CURRENT_LIST_DIR}/../unit/search_paths.cmake)
if(EXISTS ${SCRATCH_DIR}/prefix/bin/stowage)
  run(${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH ${SCRATCH_DIR}/prefix/bin/stowage --version)
endif()
run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${SCRATCH_DIR}/build -G ${GENERATOR}
    -DCMAKE_CXX_COMPILER=${CXX_COMPILER} "-DCMAKE_CXX_FLAGS=${flags}" -DLLVM_DIR=${LLVM_DIR}
    -DCMAKE_PREFIX_PATH=${SCRATCH_DIR}/prefix -DSTOWAGE_INCLUDE=${SCRATCH_DIR}/prefix/include/stowage)
run(${CMAKE_COMMAND} --build ${SCRATCH_DIR}/build)
run(${SCRATCH_DIR}/build/consumer)
if(RUNTIME)
  run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/training -B ${SCRATCH_DIR}/training -G ${GENERATOR}
      -DCMAKE_CXX_COMPILER=${CXX_COMPILER} "-DCMAKE_CXX_FLAGS=${flags}" -DLLVM_DIR=${LLVM_DIR}
      -DCMAKE_PREFIX_PATH=${SCRATCH_DIR}/prefix)
  run(${CMAKE_COMMAND} --build ${SCRATCH_DIR}/training)
  run(${CMAKE_COMMAND} -E chdir ${SCRATCH_DIR}/training ${SCRATCH_DIR}/training/training)
endif()
file(REMOVE_RECURSE "${SCRATCH_DIR}")
