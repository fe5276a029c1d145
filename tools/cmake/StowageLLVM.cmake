# SPDX-License-Identifier: Apache-2.0
#
# Creates stowage::llvm: headers (as SYSTEM) and the static Support library of LLVM, nothing else of it.
# Used by the build and by the installed package. llvm-config's flags are not used: they turn exceptions off.

if(NOT TARGET stowage::llvm)
  find_package(LLVM CONFIG REQUIRED)
  if(LLVM_VERSION_MAJOR LESS 14)
    message(FATAL_ERROR "found LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}, expected 14 or newer")
  endif()
  if(NOT LLVM_ENABLE_RTTI)
    message(FATAL_ERROR "LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR} was built without RTTI, "
                        "which ir/base/error.h needs; set LLVM_DIR to a build with LLVM_ENABLE_RTTI=ON")
  endif()
  add_library(stowage::llvm INTERFACE IMPORTED GLOBAL)
  target_include_directories(stowage::llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
  # LLVMSupport is the static archive; hidden, so that no second LLVM in the process can bind to it.
  # Not ALL archives: that would hide the allocator of clang's address sanitizer from the standard library.
  target_link_libraries(stowage::llvm INTERFACE LLVMSupport)
  target_link_options(stowage::llvm INTERFACE "LINKER:--exclude-libs,libLLVMSupport.a:libLLVMDemangle.a")
endif()
