// SPDX-License-Identifier: Apache-2.0
//
// Some libtorch ops check values before their fixed work: quantile() checks that q is between 0 and
// 1, istft() that its windows overlap.
// They are composites, so the tracer only sees a value read on the host. Here these ops announce
// each check.
// The tracer then returns the answer with which the op continues, and records an assertion that
// repeats the check in every step that runs.
// ctc_loss() makes host numbers of lengths in tensors: where these follow from the step's inputs,
// it is called with the numbers. Not here: ops whose computation depends on the answer (prod's
// backward). Those are refused.
#ifndef STOWAGE_RUNTIME_CAPTURE_DISPATCH_VALUE_CHECKS_H_
#define STOWAGE_RUNTIME_CAPTURE_DISPATCH_VALUE_CHECKS_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <llvm/ADT/ArrayRef.h>

#include <optional>

namespace stowage::runtime {

struct OpFacts;

/// Makes those ops announce their checks on threads that are traced. Once per process.
void registerValueChecks();

/// The answer to the question that `op` is, if the op around it announced it: recorded as an
/// assertion. Each announcement is for one question.
std::optional<bool> answerAnnounced(const OpFacts& op, llvm::ArrayRef<c10::IValue> args);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_DISPATCH_VALUE_CHECKS_H_
