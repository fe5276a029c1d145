# SPDX-License-Identifier: Apache-2.0
#
# Helpers shared by the folders' CMakeLists.txt: stowage_options, stowage_library, stowage_program.

# Flags of our own code only; never exported.
add_library(stowage_options INTERFACE)
target_compile_features(stowage_options INTERFACE cxx_std_20)
target_compile_options(stowage_options INTERFACE
  -Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual
  -Werror=unused-result -Werror=return-type -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # GCC 13 takes an element of a temporary view (llvm::ArrayRef) for part of the temporary.
  target_compile_options(stowage_options INTERFACE -Wno-dangling-reference)
endif()
if(STOWAGE_WERROR)
  target_compile_options(stowage_options INTERFACE -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Flow warnings with known false reports inside the standard library stay warnings.
    target_compile_options(stowage_options INTERFACE
      -Wno-error=maybe-uninitialized -Wno-error=restrict -Wno-error=array-bounds
      -Wno-error=stringop-overflow -Wno-error=stringop-overread -Wno-error=free-nonheap-object)
  endif()
endif()
if(STOWAGE_ASSERTIONS)
  target_compile_options(stowage_options INTERFACE -UNDEBUG)
  target_compile_definitions(stowage_options INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(STOWAGE_SANITIZE)
  list(JOIN STOWAGE_SANITIZE "," _sanitizers)
  target_compile_options(stowage_options INTERFACE
    -fsanitize=${_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(stowage_options INTERFACE -fsanitize=${_sanitizers})
endif()
if(STOWAGE_FUZZ)
  target_compile_options(stowage_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Sanitizers change nothing about whether a header stands alone, so those builds leave the check out.
set(STOWAGE_HEADER_CHECK OFF)
if(STOWAGE_TESTS AND NOT STOWAGE_SANITIZE)
  set(STOWAGE_HEADER_CHECK ON)
endif()

# stowage_library(<short name> SOURCES a.cpp... HEADERS public.h...
#                 PUBLIC_LINKS targets... PRIVATE_LINKS targets... HEADER_ONLY_LINKS targets...
#                 EXPORT name)
# Makes the static library stowage_<short name> with alias stowage::<short name>, or an INTERFACE library
# when there are no sources. HEADERS are the public headers: installed as include/stowage/<folder>/<file>,
# and each is compiled alone while building. HEADER_ONLY_LINKS are used by the sources alone, so the
# installed package does not ask for them. EXPORT is the export set, StowageTargets when left out.
function(stowage_library name)
  cmake_parse_arguments(ARG "" "EXPORT" "SOURCES;HEADERS;PUBLIC_LINKS;PRIVATE_LINKS;HEADER_ONLY_LINKS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "stowage_library(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_EXPORT)
    set(ARG_EXPORT StowageTargets)
  endif()
  set(target stowage_${name})
  if(ARG_SOURCES)
    set(public PUBLIC)
    add_library(${target} STATIC ${ARG_SOURCES})
    list(TRANSFORM ARG_HEADER_ONLY_LINKS REPLACE "(.+)" "$<BUILD_INTERFACE:\\1>")
    target_link_libraries(${target} PRIVATE
      $<BUILD_INTERFACE:stowage_options> ${ARG_PRIVATE_LINKS} ${ARG_HEADER_ONLY_LINKS})
  else()
    set(public INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  add_library(stowage::${name} ALIAS ${target})
  target_compile_features(${target} ${public} cxx_std_20)
  target_link_libraries(${target} ${public} ${ARG_PUBLIC_LINKS})
  target_sources(${target} ${public}
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${ARG_HEADERS})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name}
    VERIFY_INTERFACE_HEADER_SETS ${STOWAGE_HEADER_CHECK})
  install(TARGETS ${target} EXPORT ${ARG_EXPORT}
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/stowage")
  set_property(GLOBAL APPEND PROPERTY STOWAGE_LIBRARIES ${name})
endfunction()

# stowage_precompile(<target> headers...): reads these headers once for all of the target's sources. Each source
# still includes what it uses, and builds without.
function(stowage_precompile target)
  if(NOT STOWAGE_PRECOMPILE)
    return()
  endif()
  list(TRANSFORM ARGN REPLACE "(.+)" "<\\1>")
  target_precompile_headers(${target} PRIVATE ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # so that ccache sees the file
  endif()
endfunction()

# stowage_program(<name> [INSTALL] SOURCES ... LIBS ...): an executable in build/bin with our flags.
function(stowage_program name)
  cmake_parse_arguments(ARG "INSTALL" "" "SOURCES;LIBS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "stowage_program(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE stowage_options ${ARG_LIBS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  if(ARG_INSTALL)
    # Else CMake fills the built program's search path up with empty elements, which are the current
    # directory.
    set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
    install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  endif()
endfunction()

# Writes one line "name: link items" per library, for the test of the arrows between them.
function(stowage_write_link_lines file)
  get_property(names GLOBAL PROPERTY STOWAGE_LIBRARIES)
  set(text "")
  foreach(name IN LISTS names)
    get_target_property(items stowage_${name} INTERFACE_LINK_LIBRARIES)
    string(APPEND text "${name}: ${items}\n")
  endforeach()
  file(WRITE "${file}" "${text}")
endfunction()

# stowage_uses_interface_id(<target>): its sources may include "interface_id.h"
# (StowageInterfaceId.cmake).
set(STOWAGE_INTERFACE_ID "${PROJECT_BINARY_DIR}/generated/interface_id.h")
set(_script "${CMAKE_CURRENT_LIST_DIR}/StowageInterfaceId.cmake")
file(GLOB_RECURSE _headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/ir/*.h" "${PROJECT_SOURCE_DIR}/runtime/*.h")
add_custom_command(OUTPUT "${STOWAGE_INTERFACE_ID}"
  COMMAND "${CMAKE_COMMAND}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DVERSION=${PROJECT_VERSION}"
    "-DTORCH=${TorchWheel_VERSION}"
    "-DOUT=${STOWAGE_INTERFACE_ID}" -P "${_script}"
  DEPENDS ${_headers} "${_script}" VERBATIM)
add_custom_target(stowage_interface_id DEPENDS "${STOWAGE_INTERFACE_ID}")
function(stowage_uses_interface_id target)
  add_dependencies(${target} stowage_interface_id)
  target_include_directories(${target} PRIVATE "${PROJECT_BINARY_DIR}/generated")
endfunction()
