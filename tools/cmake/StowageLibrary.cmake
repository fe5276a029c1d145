# SPDX-License-Identifier: Apache-2.0
#
# Helpers shared by the folders' CMakeLists.txt: stowage_options, stowage_library, stowage_program.

# Flags of our own code only; never exported.
add_library(stowage_options INTERFACE)
target_compile_features(stowage_options INTERFACE cxx_std_20)
target_compile_options(stowage_options INTERFACE
  -Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual
  -Werror=unused-result -Werror=return-type -Wno-missing-field-initializers
  -fvisibility=hidden -fvisibility-inlines-hidden)
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

# stowage_library(<short name> SOURCES a.cpp... HEADERS public.h...
#                 PUBLIC_LINKS targets... PRIVATE_LINKS targets...)
# Makes the static library stowage_<short name> with alias stowage::<short name>. HEADERS are the public
# headers: installed under include/stowage/<folder>/ and each compiled alone by a test.
# Without sources it is an INTERFACE library.
function(stowage_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;PUBLIC_LINKS;PRIVATE_LINKS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "stowage_library(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  set(target stowage_${name})
  if(ARG_SOURCES)
    set(public PUBLIC)
    add_library(${target} STATIC ${ARG_SOURCES})
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:stowage_options> ${ARG_PRIVATE_LINKS})
  else()
    set(public INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  add_library(stowage::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} ${public} cxx_std_20)
  target_link_libraries(${target} ${public} ${ARG_PUBLIC_LINKS})
  target_sources(${target} ${public}
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${ARG_HEADERS})
  set_property(GLOBAL APPEND PROPERTY STOWAGE_LIBRARIES ${name})
endfunction()

# stowage_program(<name> SOURCES ... LIBS ...): an executable in build/bin with our flags.
function(stowage_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE stowage_options ${ARG_LIBS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
endfunction()
