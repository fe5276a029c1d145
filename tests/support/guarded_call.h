// SPDX-License-Identifier: Apache-2.0
//
// Calls of ops in child processes, on memory in which every access outside of a tensor is seen
// (guarded_memory.h): what becomes of a call that nothing has refused? The caller must not have run
// anything on several threads of libtorch's, which children do not have.
#ifndef STOWAGE_TESTS_SUPPORT_GUARDED_CALL_H_
#define STOWAGE_TESTS_SUPPORT_GUARDED_CALL_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <llvm/ADT/ArrayRef.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/call_mutants.h"

namespace stowage::tests {

/// Calls `op` with the arguments of each mutant that `isAccepted`, which is asked in the child,
/// too. By mutant: "" when it was refused, returned or threw, else what happened: "the call: signal
/// 11", "the call: wrote outside of its tensors", "the check: takes longer than 20 s".
std::vector<std::string> callGuarded(const c10::OperatorHandle& op,
                                     llvm::ArrayRef<CallMutant> mutants,
                                     const std::function<bool(const CallMutant&)>& isAccepted);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_GUARDED_CALL_H_
