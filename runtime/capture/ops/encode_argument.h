// SPDX-License-Identifier: Apache-2.0
//
// An argument of an ATen call as the IR writes it: host values by value, enumerations by name,
// tensors by the id that `intern` gives them.
// Not here: step scalars (they are told apart only once several steps are known).
#ifndef STOWAGE_RUNTIME_CAPTURE_OPS_ENCODE_ARGUMENT_H_
#define STOWAGE_RUNTIME_CAPTURE_OPS_ENCODE_ARGUMENT_H_

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <llvm/ADT/STLFunctionalExtras.h>

#include "ir/graph/graph.h"

namespace stowage::runtime {

using InternTensor = llvm::function_ref<ir::ValueId(const at::Tensor&)>;

/// Throws c10::Error for what the IR cannot say (a generator of one's own, a complex tensor made
/// from a host number).
ir::Argument encodeArgument(const c10::IValue& value, const c10::Argument& argument,
                            InternTensor intern);

/// True for a tensor that stands for a host number (`x * 2.0`).
bool isWrappedNumber(const at::Tensor& tensor);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_OPS_ENCODE_ARGUMENT_H_
