// SPDX-License-Identifier: Apache-2.0
//
// Checks the calls of a graph from a file against libtorch's ops, when it is loaded and again
// before any of them runs. Not here: reading files; the comparison itself
// (runtime/capture/loaded/call_checks.h).
#ifndef STOWAGE_TOOLS_FILES_LOADED_CALLS_H_
#define STOWAGE_TOOLS_FILES_LOADED_CALLS_H_

#include <string>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/text/parser.h"

namespace stowage::tools {

/// Every op of libtorch's is one that this libtorch has, and every call that may be made does what
/// the graph says. Ops of other libraries are theirs. Errors: kUnsupported, kParse with the place
/// of the op; kOutOfDeviceMemory.
ir::Error checkLoadedCalls(const ir::Module& loaded);

/// To be asked before a graph of file `path` is run or measured. Errors: kUnsupported with the file
/// when an op may not be called from one.
ir::Error checkMayRun(const ir::Graph& graph, const std::string& path);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_FILES_LOADED_CALLS_H_
