// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops without an own kernel for tensors that have no data.
#include <ATen/native/TypeProperties.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/WrapDimMinimal.h>

#include <algorithm>

#include "runtime/capture/ops/meta_kernel.h"
#include "runtime/capture/ops/op_facts.h"
#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

/// The shape and layout that elementwise ops give to operands of different shapes and layouts:
/// asked of an op that has a kernel without data.
TensorShape shapeOfElementwise(const TracedCall& call, std::initializer_list<at::Tensor> operands) {
  static const OpFacts kTwo(c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor"));
  static const OpFacts kThree(c10::Dispatcher::singleton().findSchemaOrThrow("aten::addcmul", ""));
  std::vector<c10::IValue> args(operands.begin(), operands.end());
  args.emplace_back(1);
  const OpFacts& op = operands.size() == 2 ? kTwo : kThree;
  return runMetaKernel({.op = op, .args = args, .target = call.target, .device = call.device})[0]
      .tensors[0]
      .shape;
}

/// Like the operand, dense strides kept.
Outputs likeSelf(const TracedCall& call) { return outputs({freshLike(call.tensor(0))}); }
/// _assert_async.msg(self, message)
Outputs nothing(const TracedCall& /*call*/) { return {}; }
Outputs contiguousLikeSelf(const TracedCall& call) {
  return outputs({fresh(call.tensor(0).sizes().vec(), call.tensor(0).scalar_type())});
}
Outputs contiguousLikeSecond(const TracedCall& call) {
  return outputs({fresh(call.tensor(1).sizes().vec(), call.tensor(1).scalar_type())});
}

/// Elementwise kernels bring the stride of a dimension of one element in line, which empty_like
/// does not.
Outputs alignedLikeSelf(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  return outputs({elementwise(call, {self, self}, self.scalar_type())});
}
Outputs alignedLikeSecond(const TracedCall& call) {
  const at::Tensor& second = call.tensor(1);
  return outputs({elementwise(call, {second, second}, second.scalar_type())});
}
Outputs flagsLikeSelf(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  return outputs({elementwise(call, {self, self}, c10::kBool)});
}

/// abs(self): of a complex number it is real.
Outputs absolute(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  if (!self.is_complex()) return alignedLikeSelf(call);
  return outputs({freshLike(self, c10::toRealValueType(self.scalar_type()))});
}

c10::ScalarType floatTypeOf(const at::Tensor& self) {
  return c10::isIntegralType(self.scalar_type(), /*includeBool=*/true)
             ? c10::get_default_dtype_as_scalartype()
             : self.scalar_type();
}

/// logit(self, eps)
Outputs floatOfSelf(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  return outputs({elementwise(call, {self, self}, floatTypeOf(self))});
}

/// angle(self): of complex numbers it is the real part of a tensor that goes.
Outputs angleOfSelf(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  if (!self.is_complex()) return floatOfSelf(call);
  return outputs({fresh(self.sizes().vec(), c10::toRealValueType(self.scalar_type()))});
}

/// polar(abs, angle), complex(real, imag): broadcast, into complex numbers of their size.
Outputs complexOfTwo(const TracedCall& call) {
  return outputs({elementwise(call, {call.tensor(0), call.tensor(1)},
                              c10::toComplexType(call.tensor(0).scalar_type()))});
}

/// rot90(self, k, dims): made of flip, a copy, and a transposition of that copy.
Outputs quarterTurns(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  const int64_t turns = (call.integer(1) % 4 + 4) % 4;
  if (turns == 0) return outputs({freshContiguous(self)});
  OutputTensor turned = freshLike(self);
  if (turns == 2) return outputs({turned});
  const std::vector<int64_t> dims = call.args[2].toIntVector();
  const auto at = [&](size_t i) {
    return static_cast<size_t>(c10::maybe_wrap_dim(dims[i], self.dim()));
  };
  std::swap(turned.shape.sizes[at(0)], turned.shape.sizes[at(1)]);
  std::swap(turned.shape.strides[at(0)], turned.shape.strides[at(1)]);
  return outputs({turned});
}

/// The type that two operands are brought to; one without dimensions counts less.
c10::ScalarType promoted(const at::Tensor& a, const at::Tensor& b) {
  at::native::ResultTypeState state;
  state = at::native::update_result_type_state(a, state);
  state = at::native::update_result_type_state(b, state);
  return at::native::result_type(state);
}

/// op(a, b): broadcast, types promoted.
Outputs twoOperands(const TracedCall& call) {
  const c10::ScalarType dtype = promoted(call.tensor(0), call.tensor(1));
  return outputs({elementwise(call, {call.tensor(0), call.tensor(1)}, dtype)});
}
Outputs logical(const TracedCall& call) {
  return outputs({elementwise(call, {call.tensor(0), call.tensor(1)}, c10::kBool)});
}

/// In place, with operands that are broadcast to the first one.
Outputs ontoSelf(const TracedCall& call) { return outputs({itself(call.tensor(0))}); }

/// where(condition, self, other): all three broadcast.
Outputs where(const TracedCall& call) {
  const c10::ScalarType dtype = promoted(call.tensor(1), call.tensor(2));
  return outputs({elementwise(call, {call.tensor(0), call.tensor(1), call.tensor(2)}, dtype)});
}

/// The overload that writes to a tensor given as its last argument, which must have the size.
Outputs intoOut(const TracedCall& call, const OutputTensor& result) {
  const at::Tensor& out = call.tensor(call.args.size() - 1);
  TORCH_CHECK(out.sizes() == c10::IntArrayRef(result.shape.sizes),
              "it resizes an argument (an `out` of another size)");
  return outputs({itself(out)});
}
Outputs whereInto(const TracedCall& call) { return intoOut(call, where(call)[0].tensors[0]); }
/// smooth_l1_loss_backward.grad_input(grad, self, target, reduction, beta, out)
Outputs lossGradientInto(const TracedCall& call) {
  return intoOut(call, freshContiguous(call.tensor(1)));
}

/// _prelu_kernel_backward(grad_out, self, weight) -> two of the broadcast shape
Outputs preluBackward(const TracedCall& call) {
  const OutputTensor one = elementwise(call, {call.tensor(1), call.tensor(2), call.tensor(0)},
                                       call.tensor(1).scalar_type());
  return outputs({one, one});
}

/// log_sigmoid_forward(self) -> result, buffer that only the CPU's backward needs
Outputs logSigmoid(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  const OutputTensor none = fresh({0}, self.scalar_type());
  if (call.device.is_cuda()) return outputs({freshLike(self), none});
  const OutputTensor dense = fresh(self.sizes().vec(), self.scalar_type());
  return outputs({dense, dense});
}

constexpr NamedRule kRules[] = {
    {"aten._assert_async.msg", nothing},
    {"aten._conj_physical.default", likeSelf},
    {"aten._prelu_kernel.default", twoOperands},
    {"aten._prelu_kernel_backward.default", preluBackward},
    {"aten.abs.default", absolute},
    {"aten.abs_.default", ontoSelf},
    {"aten.angle.default", angleOfSelf},
    {"aten.complex.default", complexOfTwo},
    {"aten.conj_physical_.default", ontoSelf},
    {"aten.flip.default", likeSelf},
    {"aten.floor_divide.default", twoOperands},
    {"aten.floor_divide_.Scalar", ontoSelf},
    {"aten.glu_backward.default", contiguousLikeSecond},
    {"aten.hardswish.default", alignedLikeSelf},
    {"aten.hardswish_backward.default", twoOperands},
    {"aten.hardtanh.default", likeSelf},
    {"aten.hardtanh_backward.default", twoOperands},
    {"aten.isinf.default", flagsLikeSelf},
    {"aten.isnan.default", flagsLikeSelf},
    {"aten.log_sigmoid_backward.default", twoOperands},
    {"aten.log_sigmoid_forward.default", logSigmoid},
    {"aten.logical_and.default", logical},
    {"aten.logical_and_.default", ontoSelf},
    {"aten.logical_not.default", flagsLikeSelf},
    {"aten.logical_not_.default", ontoSelf},
    {"aten.logical_or.default", logical},
    {"aten.logical_or_.default", ontoSelf},
    {"aten.logical_xor.default", logical},
    {"aten.logical_xor_.default", ontoSelf},
    {"aten.logit.default", floatOfSelf},
    {"aten.mish_backward.default", twoOperands},
    {"aten.nan_to_num.default", likeSelf},
    {"aten.nan_to_num_.default", ontoSelf},
    {"aten.polar.default", complexOfTwo},
    {"aten.relu.default", alignedLikeSelf},
    {"aten.remainder.Scalar_Tensor", alignedLikeSecond},
    {"aten.roll.default", contiguousLikeSelf},
    {"aten.rot90.default", quarterTurns},
    {"aten.rsub.Tensor", twoOperands},
    {"aten.smooth_l1_loss_backward.grad_input", lossGradientInto},
    {"aten.where.self", where},
    {"aten.where.self_out", whereInto},
};

}  // namespace

OutputTensor elementwise(const TracedCall& call, std::initializer_list<at::Tensor> operands,
                         c10::ScalarType dtype) {
  const TensorShape shape = shapeOfElementwise(call, operands);
  return freshStrided({shape.sizes.data(), shape.sizes.size()},
                      {shape.strides.data(), shape.strides.size()}, dtype);
}

llvm::ArrayRef<NamedRule> pointwiseRules() { return kRules; }

}  // namespace stowage::runtime
