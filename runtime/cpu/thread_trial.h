// SPDX-License-Identifier: Apache-2.0
//
// Whether this process may start threads and give each its memory, found out before a library
// needs them: libtorch's pool waits for ever for threads that were refused, OpenMP's ends the
// process, and MKL's matrix products, refused a buffer, take another way that gives other bits.
#ifndef STOWAGE_RUNTIME_CPU_THREAD_TRIAL_H_
#define STOWAGE_RUNTIME_CPU_THREAD_TRIAL_H_

#include "ir/base/error.h"

namespace stowage::runtime {

/// Starts so many threads at once and ends them; their stacks stay at hand for the next ones.
/// Errors: kEnvironment.
ir::Error checkThreads(int count);
/// Whether this process may take buffers of so many threads and a heap for each; takes and returns
/// them. Errors: kEnvironment.
ir::Error checkThreadMemory(int count);
/// Both, for what libtorch starts for ops of so many threads, and the streams beside them.
ir::Error checkOpThreads(int intraOpThreads);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CPU_THREAD_TRIAL_H_
