// SPDX-License-Identifier: Apache-2.0
//
// A call of an op, kept with copies of its arguments, and ways to spoil it one argument at a time:
// a tensor that is smaller, longer, empty, of another rank, type or layout, absent; a number that
// is another one. Values of integer tensors are spoilt by ways of their own, since no look at
// shapes can see them.
#ifndef STOWAGE_TESTS_SUPPORT_CALL_MUTANTS_H_
#define STOWAGE_TESTS_SUPPORT_CALL_MUTANTS_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <llvm/ADT/ArrayRef.h>

#include <functional>
#include <string>
#include <vector>

namespace stowage::tests {

struct KeptCall {
  c10::OperatorHandle op;
  std::vector<c10::IValue> args;
};

/// With every tensor replaced by what `change` makes of it, the same one by the same; tensors that
/// stand for host numbers stay.
std::vector<c10::IValue> withTensors(llvm::ArrayRef<c10::IValue> args,
                                     const std::function<at::Tensor(const at::Tensor&)>& change);

struct CallMutant {
  std::string what;  // "grad_output is empty"
  std::vector<c10::IValue> args;
};

/// Calls of an op of which no row is known, with tensors of a few kinds and small numbers. Not all
/// are right.
std::vector<KeptCall> guessCalls(const c10::OperatorHandle& op);

/// Spoilt in what a look at shapes and numbers can see.
std::vector<CallMutant> spoilShapes(const KeptCall& call);
/// Spoilt in the values of integer tensors.
std::vector<CallMutant> spoilValues(const KeptCall& call);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_CALL_MUTANTS_H_
