// SPDX-License-Identifier: Apache-2.0
//
// Optimizers of Python keep numbers (step counts, factors) in CPU tensors without a dimension.
// While such an optimizer steps, calls on these alone run for real. A call that takes one beside
// tensors of the step takes it as a number, which the plan asks for anew in each step.
// Not here: numbers that are no tensors (encode_argument.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_DISPATCH_HOST_NUMBERS_H_
#define STOWAGE_RUNTIME_CAPTURE_DISPATCH_HOST_NUMBERS_H_

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <llvm/ADT/ArrayRef.h>

namespace stowage::runtime {

struct OpFacts;

/// Until the next call, on this thread: tensors of no dimension on the CPU are numbers of the host.
/// `takeValues`: some of them only take values of the step (buffers of an averaged model).
void setHostNumbers(bool areHostNumbers, bool takeValues = false);

/// Does the call work on host numbers alone, or make one?
bool worksOnHostNumbers(const OpFacts& op, llvm::ArrayRef<c10::IValue> args);

/// An op on lists of which one holds host numbers beside lists of the step's tensors: what libtorch
/// does then is one call for each element.
bool takesListOfHostNumbers(const OpFacts& op, llvm::ArrayRef<c10::IValue> args);

/// Makes the host numbers among the arguments of elementwise arithmetic numbers of the call, where
/// its results are the same then.
void takeAsNumbers(const OpFacts& op, torch::jit::Stack* stack);

/// Would the call write what only the step's tensors tell into a host number?
bool writesHostNumber(const OpFacts& op, llvm::ArrayRef<c10::IValue> args);

/// A fused update with a learning rate in a CPU tensor that the step does not write.
bool takesRateOfHost(const OpFacts& op, llvm::ArrayRef<c10::IValue> args);

/// Calls the update with the rate as a number, as libtorch's kernels do.
void callWithRate(const OpFacts& op, torch::jit::Stack* stack);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_DISPATCH_HOST_NUMBERS_H_
