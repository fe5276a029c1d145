// SPDX-License-Identifier: Apache-2.0
//
// Files are written whole or not at all: into a temporary name beside the target, then renamed over
// it. A link to the target stays a link; devices and pipes are written to as they are.
#ifndef STOWAGE_RUNTIME_FILES_WHOLE_FILE_H_
#define STOWAGE_RUNTIME_FILES_WHOLE_FILE_H_

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Support/raw_ostream.h>

#include <string>

#include "ir/base/error.h"

namespace stowage::runtime {

/// A device or a pipe: written to as it is, there is nothing to replace.
bool isStream(const std::string& path);

/// Finds out by making the temporary file, and removes it. Errors: kEnvironment.
ir::Error checkReplaceable(const std::string& path);
/// Takes the place of a file that is there. Errors: kEnvironment naming path and reason.
ir::Error replaceFile(const std::string& path, llvm::function_ref<void(llvm::raw_ostream&)> write);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_FILES_WHOLE_FILE_H_
