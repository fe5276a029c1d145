// SPDX-License-Identifier: Apache-2.0
//
// A captured step as a file: the graph's text and, as a last comment line, a checksum of all that
// is above it. Most damage leaves a text that parses: a digit of a size, a letter of a name, a line
// that is gone. Without that line, which is how a graph written by hand looks, nothing is checked.
#ifndef STOWAGE_TOOLS_FILES_STEP_FILE_H_
#define STOWAGE_TOOLS_FILES_STEP_FILE_H_

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>

#include <string>

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::tools {

void writeStepFile(const ir::Graph& graph, llvm::raw_ostream& os);

/// Errors: kParse with the file and the line of the checksum.
ir::Error checkStepText(llvm::StringRef text, const std::string& path);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_FILES_STEP_FILE_H_
