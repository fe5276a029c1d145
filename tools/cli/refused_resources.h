// SPDX-License-Identifier: Apache-2.0
//
// Handles refused memory and threads that no library turned into an error value. In a verb they
// become an ordinary error. On other threads, inside LLVM, during library initialisation and in
// OpenMP the program ends at once, with the same exit code.
#ifndef STOWAGE_TOOLS_CLI_REFUSED_RESOURCES_H_
#define STOWAGE_TOOLS_CLI_REFUSED_RESOURCES_H_

#include "ir/base/error.h"

namespace stowage::tools {

/// The exception that is being handled as an error: kEnvironment for what the machine refused, else
/// kInternal.
ir::Error takeException();

/// From here on refused memory and threads end the program with a message.
void endOnRefusedResources();
/// Call when the program ends normally: its own exit code then counts.
void endsItself();

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_CLI_REFUSED_RESOURCES_H_
