// SPDX-License-Identifier: Apache-2.0
//
// What an op asks of its operands where neither libtorch's kernels nor its kernels for tensors
// without data ask: they take sizes, types and counts of one operand for those of the others, and
// would read or write what lies behind a smaller one. Looked at before an op's results are found:
// when a step is captured, when an archive is imported, and when a graph is read from a file. Which
// ops need a rule is what tests/unit/runtime/capture/ops/operand_rules_test.cpp finds out.
#ifndef STOWAGE_RUNTIME_CAPTURE_OPS_OPERAND_RULES_H_
#define STOWAGE_RUNTIME_CAPTURE_OPS_OPERAND_RULES_H_

#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {

/// What is asked beside the look at the first operand; null: nothing. The pointer stays valid.
OperandCheck findOperandRule(llvm::StringRef op);

/// Throws c10::Error that says which argument is wrong, what was found and what was expected.
void checkOperands(const TracedCall& call);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_OPS_OPERAND_RULES_H_
