// SPDX-License-Identifier: Apache-2.0
//
// Checks of operands that neither libtorch's kernels nor its meta kernels make. Those kernels take
// sizes, types and counts of one operand for all, and would read or write past the end of a smaller
// one. The checks run before an op's results are found: at capture, at import of an archive, and
// when a graph is read from a file. Which ops need a rule is found by
// tests/unit/runtime/capture/ops/operand_rules_test.cpp.
#ifndef STOWAGE_RUNTIME_CAPTURE_OPS_OPERAND_RULES_H_
#define STOWAGE_RUNTIME_CAPTURE_OPS_OPERAND_RULES_H_

#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {

/// The op's own check, run after that of the first operand; null: none. Stays valid.
OperandCheck findOperandRule(llvm::StringRef op);

/// Throws c10::Error that says which argument is wrong, what was found and what was expected.
void checkOperands(const TracedCall& call);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_OPS_OPERAND_RULES_H_
