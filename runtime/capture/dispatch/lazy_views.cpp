// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/dispatch/lazy_views.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/neg.h>

#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/capture/ops/call_results.h"
#include "runtime/capture/ops/op_facts.h"

namespace stowage::runtime {
namespace {

struct Marks {
  bool conjugated = false;
  bool negated = false;
};

Marks marksOf(const at::Tensor& tensor) { return {tensor.is_conj(), tensor.is_neg()}; }

/// The same bytes, read as they are.
at::Tensor bytesOf(const at::Tensor& tensor) {
  if (!isLazyView(tensor)) return tensor;
  TensorShape shape = shapeOf(tensor);
  shape.conjugated = false;
  shape.negated = false;
  return makeTensor(tensor.storage(), shape);
}

at::Tensor apply(const Marks& marks, at::Tensor tensor) {
  if (marks.conjugated) at::conj_physical_(tensor);
  if (marks.negated) at::neg_(tensor);
  return tensor;
}

/// clone(self, memory_format?), _conj_physical(self)
at::Tensor cloneMarked(llvm::ArrayRef<c10::IValue> args, bool conjugates) {
  const at::Tensor& self = args[0].toTensor();
  const auto format = args.size() > 1 ? args[1].toOptional<c10::MemoryFormat>()
                                      : std::optional<c10::MemoryFormat>();
  Marks marks = marksOf(self);
  marks.conjugated = marks.conjugated != conjugates;
  return apply(marks, at::clone(bytesOf(self), format));
}

/// copy_(self, source, non_blocking): both may be marked. Nothing where the copy changes the kind
/// of number.
std::optional<at::Tensor> copyMarked(llvm::ArrayRef<c10::IValue> args) {
  const at::Tensor& self = args[0].toTensor();
  const at::Tensor& source = args[1].toTensor();
  const bool sameKind = self.is_complex() == source.is_complex() &&
                        self.is_floating_point() == source.is_floating_point();
  if (!sameKind) return std::nullopt;
  const Marks to = marksOf(self), from = marksOf(source);
  at::Tensor bytes = bytesOf(self);
  bytes.copy_(bytesOf(source), args[2].toBool());
  apply({to.conjugated != from.conjugated, to.negated != from.negated}, bytes);
  return self;
}

}  // namespace

bool isLazyView(const at::Tensor& tensor) { return tensor.is_conj() || tensor.is_neg(); }

bool takesLazyView(llvm::ArrayRef<c10::IValue> args) {
  bool any = false;
  forEachTensor(args, [&](const at::Tensor& tensor) { any = any || isLazyView(tensor); });
  return any;
}

std::optional<at::Tensor> copyLazyView(const OpFacts& op, llvm::ArrayRef<c10::IValue> args) {
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  if (op.name == "aten.clone.default") return cloneMarked(args, false);
  if (op.name == "aten._conj_physical.default") return cloneMarked(args, true);
  if (op.name == "aten.copy_.default") return copyMarked(args);
  return std::nullopt;
}

}  // namespace stowage::runtime
