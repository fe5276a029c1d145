# SPDX-License-Identifier: Apache-2.0
#
# What the Python package consists of: target stowage_python builds it, component python installs it
# (and no other installation has it). Used by scikit-build-core (pyproject.toml) and by
# tools/make_wheel.py.

if(NOT STOWAGE_RUNTIME)
  return()
endif()

set(_libraries stowage_core)
if(TARGET stowage_cuda)
  list(APPEND _libraries stowage_cuda)
endif()
add_custom_target(stowage_python)
add_dependencies(stowage_python ${_libraries} stowage)

# So that they load on systems older than this one, and where no ncurses is.
foreach(_target IN LISTS _libraries ITEMS stowage)
  target_sources(${_target} PRIVATE $<TARGET_OBJECTS:stowage_older_systems>)
  target_link_options(${_target} PRIVATE "LINKER:--as-needed")
endforeach()

set(_python "${PROJECT_SOURCE_DIR}/runtime/python")
install(DIRECTORY "${_python}/stowage/" DESTINATION stowage
  COMPONENT python EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.py")
# A folder for each torch: a wheel may hold several (tools/make_wheel.py).
set(_of_torch "stowage/torch-${TorchWheel_VERSION}")
install(TARGETS ${_libraries} LIBRARY DESTINATION ${_of_torch}/lib COMPONENT python EXCLUDE_FROM_ALL)
install(TARGETS stowage RUNTIME DESTINATION ${_of_torch}/bin COMPONENT python EXCLUDE_FROM_ALL)
# The command says where libtorch is; the folder that it was linked from is this machine's.
install(CODE
  "file(RPATH_REMOVE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${_of_torch}/bin/stowage\")"
  COMPONENT python EXCLUDE_FROM_ALL)
if(SKBUILD)
  install(PROGRAMS "${_python}/launch_program.py" DESTINATION "${SKBUILD_SCRIPTS_DIR}"
    RENAME stowage COMPONENT python EXCLUDE_FROM_ALL)
endif()

# Licences of what is linked in, where the distribution's packages bring them.
foreach(_package
    llvm-${LLVM_VERSION_MAJOR}-dev nlohmann-json3-dev libcli11-dev libfmt-dev libxxhash-dev)
  install(FILES "/usr/share/doc/${_package}/copyright" DESTINATION stowage/licenses
    RENAME "${_package}.txt" COMPONENT python EXCLUDE_FROM_ALL OPTIONAL)
endforeach()
