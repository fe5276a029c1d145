// SPDX-License-Identifier: Apache-2.0
//
// The door for what no library made a value of: memory or a thread that the machine refused.
// In a verb it becomes an error as any other; on other threads, inside LLVM, while libraries are
// initialised, and where OpenMP ends the process, the program ends at once with the same exit code.
#ifndef STOWAGE_TOOLS_CLI_REFUSED_RESOURCES_H_
#define STOWAGE_TOOLS_CLI_REFUSED_RESOURCES_H_

#include "ir/base/error.h"

namespace stowage::tools {

/// The exception that is being handled as an error: kEnvironment for what the machine refused, else
/// kInternal.
ir::Error takeException();

/// From here on refused memory and threads end the program with a message.
void endOnRefusedResources();
/// The program ends by itself: its exit code is its own.
void endsItself();

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_CLI_REFUSED_RESOURCES_H_
