// SPDX-License-Identifier: Apache-2.0
//
// Checks that this process may start threads and give each its memory, before a library needs them.
// After a refusal libtorch's pool would wait for ever, OpenMP would end the process, and MKL
// without its buffer would compute matrix products another way, with other bits.
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
