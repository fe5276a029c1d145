// SPDX-License-Identifier: Apache-2.0
//
// From what an op returns (shape_rules.h) to tensors without memory: fresh storages on the right
// device, views of known ones, the arguments themselves.
// Not here: the rules by which outputs are found.
#ifndef STOWAGE_RUNTIME_CAPTURE_OPS_CALL_RESULTS_H_
#define STOWAGE_RUNTIME_CAPTURE_OPS_CALL_RESULTS_H_

#include <ATen/core/stack.h>

#include <vector>

#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {

struct CallResults {
  torch::jit::Stack values;         // one per return of the schema
  std::vector<at::Tensor> tensors;  // the same, flattened, undefined ones included
  bool onlyViews = false;           // at least one, and each is an argument or a view of one
};

/// What `call` returns, by rule or meta kernel; its operands are looked at first
/// (operand_rules.h). Throws what is wrong with them.
Outputs findOutputs(const TracedCall& call);

/// Finds the results of `call` and makes them.
CallResults makeResults(const TracedCall& call, const FakeOrigin& origin);

/// Calls `visit(const at::Tensor&)` for every defined tensor among `args`.
template <typename Visitor>
void forEachTensor(llvm::ArrayRef<c10::IValue> args, Visitor visit) {
  const auto visitDefined = [&](const at::Tensor& tensor) {
    if (tensor.defined()) visit(tensor);
  };
  for (const c10::IValue& value : args) {
    if (value.isTensor()) {
      visitDefined(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) visitDefined(tensor);
    } else if (value.isOptionalTensorList()) {
      for (const auto& tensor : value.toOptionalTensorVector()) {
        if (tensor) visitDefined(*tensor);
      }
    }
  }
}

/// Where a call puts what it makes: its `device` argument, else where its arguments are.
c10::Device deviceOfCall(llvm::ArrayRef<c10::IValue> args);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_OPS_CALL_RESULTS_H_
