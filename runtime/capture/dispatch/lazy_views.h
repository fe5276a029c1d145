// SPDX-License-Identifier: Apache-2.0
//
// Views whose values differ from their bytes. conj() of a complex tensor copies nothing: it returns
// a view with a mark (dispatch key Conjugate), and imag() of such a view is marked Negative.
// libtorch makes the copy only where an op needs the values, by clone or copy_; a few ops (mm, dot,
// ...) take marked views directly. A value of a graph has bytes and no mark, so a marked view must
// not become one.
// clone, copy_ or _conj_physical of marked views -> the same on bytes, then a conjugation or
// negation in place: what libtorch's own copy does, with its bits. Not here: refusing all other
// ops.
#ifndef STOWAGE_RUNTIME_CAPTURE_DISPATCH_LAZY_VIEWS_H_
#define STOWAGE_RUNTIME_CAPTURE_DISPATCH_LAZY_VIEWS_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <llvm/ADT/ArrayRef.h>

#include <optional>

namespace stowage::runtime {

struct OpFacts;

bool isLazyView(const at::Tensor& tensor);
bool takesLazyView(llvm::ArrayRef<c10::IValue> args);

/// What `op` returns, found by calling other ops, which reach the tracer. Nothing when `op` is none
/// that copies.
std::optional<at::Tensor> copyLazyView(const OpFacts& op, llvm::ArrayRef<c10::IValue> args);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_DISPATCH_LAZY_VIEWS_H_
