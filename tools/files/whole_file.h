// SPDX-License-Identifier: Apache-2.0
//
// Files are written whole or not at all: into a temporary name beside the target, then renamed over
// it. An existing file is replaced only when asked for; a link to it stays a link. "-" is standard
// output (never a partial file) and standard input; devices and pipes are written to as they are.
#ifndef STOWAGE_TOOLS_FILES_WHOLE_FILE_H_
#define STOWAGE_TOOLS_FILES_WHOLE_FILE_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>

#include <functional>
#include <string>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "runtime/files/input_file.h"

namespace stowage::tools {

/// Errors: kEnvironment naming path and reason; kInvalidArgument if it exists and `replace` is
/// false, or if there can be no such file.
ir::Error writeWholeFile(const std::string& path, bool replace,
                         const std::function<void(llvm::raw_ostream&)>& write);
/// Refuses early, before hours of work, what writeWholeFile would refuse at the end.
ir::Error checkWritable(const std::string& path, bool replace);
/// Refuses early a folder in which no files can be made: one that is a file, or is not writable. If
/// the folder does not exist, its parent is checked.
/// Errors: kInvalidArgument, kEnvironment.
ir::Error checkOutputFolder(const std::string& folder);
/// Refuses an output that is also an input, by any name or link; "" means no file. Errors:
/// kInvalidArgument.
ir::Error checkIsNoInput(const std::string& output, llvm::ArrayRef<std::string> inputs);
/// Regular files, and standard input for "-"; `most` bytes at most. Errors: kIo with the file.
ir::Expected<std::string> readWholeFile(const std::string& path,
                                        Bytes most = runtime::kLargestText);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_FILES_WHOLE_FILE_H_
