// SPDX-License-Identifier: Apache-2.0
//
// Some of libtorch's ops look at values before they do what they always do: quantile() asks whether
// its q is between 0 and 1, istft() whether its windows overlap. They are made of other ops, so the
// tracer sees no more than a value that goes to the host. Here they announce what they are about to
// ask; the tracer then gives the answer that lets them go on, and records an assertion, which asks
// again in every step that runs.
// Not here: ops that take another way where the answer is another (prod's backward): those are
// refused.
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
