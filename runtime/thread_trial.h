// SPDX-License-Identifier: Apache-2.0
//
// Whether this process may start threads, found out before a library starts its own: libtorch's
// pool waits for ever for threads that were refused, OpenMP's ends the process.
#ifndef STOWAGE_RUNTIME_THREAD_TRIAL_H_
#define STOWAGE_RUNTIME_THREAD_TRIAL_H_

#include "ir/error.h"

namespace stowage::runtime {

/// Starts so many threads at once and ends them; their stacks stay at hand for the next ones.
/// Errors: kEnvironment.
ir::Error checkThreads(int count);
/// What libtorch starts for ops of so many threads, and the streams beside them.
ir::Error checkOpThreads(int intraOpThreads);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_THREAD_TRIAL_H_
