// SPDX-License-Identifier: Apache-2.0
//
// A program that starts itself once for each rank of a training on this host, with the variables
// that a launcher would set, and waits for all. Stop signals go on to all of them. When one has
// failed, the others have a while to say so and end; then they are ended.
#ifndef STOWAGE_TOOLS_RUN_RANK_PROCESSES_H_
#define STOWAGE_TOOLS_RUN_RANK_PROCESSES_H_

#include <cstdint>

#include "ir/base/error.h"

namespace stowage::tools {

inline constexpr int64_t kMostRanksOfHost = 1024;

/// This process's own command line, again. Returns the exit code of the rank that was the first to
/// fail, else that of rank 0. Errors: kEnvironment for a rank that cannot be started, that a signal
/// ended, or that had to be ended.
ir::Expected<int> runRanks(int64_t count);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_RANK_PROCESSES_H_
