// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/dispatch/masked_scatter.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/accumulate.h>
#include <torch/library.h>

#include <vector>

#include "runtime/capture/dispatch/known_sizes.h"
#include "runtime/capture/dispatch/tracer.h"
#include "runtime/torch/internals/trace_key.h"

namespace stowage::runtime {
namespace {

/// masked_scatter_backward(grad_output, mask, sizes)
at::Tensor maskedScatterBackward(const at::Tensor& grad, const at::Tensor& mask,
                                 c10::SymIntArrayRef sizes) {
  const c10::IntArrayRef shape = C10_AS_INTARRAYREF_SLOW(sizes);
  const int64_t count = c10::multiply_integers(shape);
  const at::Tensor chosen = mask.expand(grad.sizes()).reshape({-1});
  // What is not chosen goes to an element behind the last.
  const at::Tensor place =
      at::where(chosen, at::cumsum(chosen, 0, c10::kLong).sub(1), at::Scalar(count));
  return at::zeros({count + 1}, grad.options())
      .scatter(0, place, grad.reshape({-1}))
      .narrow(0, 0, count)
      .view(shape);
}

/// masked_select_backward(grad, input, mask)
at::Tensor maskedSelectBackward(const at::Tensor& grad, const at::Tensor& input,
                                const at::Tensor& mask) {
  const std::vector<int64_t> sizes = at::infer_size(input.sizes(), mask.sizes());
  at::Tensor result = at::zeros_like(input.expand(sizes), at::MemoryFormat::Preserve);
  const at::Tensor place = flatPositions(mask.expand(sizes), grad.numel());
  const at::Tensor scattered =
      at::zeros({result.numel()}, result.options()).scatter(0, place, grad).view(sizes);
  return result.is_contiguous() ? scattered : result.copy_(scattered);
}

/// A composite, so autograd's kernel of it is replaced.
void maskedSelectBackwardBoxed(const c10::OperatorHandle& op, c10::DispatchKeySet,
                               torch::jit::Stack* stack) {
  if (!TracingScope::isOnThisThread()) {
    return op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
  }
  const std::vector<c10::IValue> args = torch::jit::pop(*stack, 3);
  stack->emplace_back(
      maskedSelectBackward(args[0].toTensor(), args[1].toTensor(), args[2].toTensor()));
}

}  // namespace

void registerMaskedScatter() {
  static torch::Library library(torch::Library::IMPL, "aten", kTraceKey, __FILE__, __LINE__);
  static torch::Library cpu(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCPU, __FILE__,
                            __LINE__);
  static torch::Library cuda(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCUDA, __FILE__,
                             __LINE__);
  static const bool kRegistered = [] {
    library.impl("masked_scatter_backward", &maskedScatterBackward);
    cpu.impl("masked_select_backward",
             torch::CppFunction::makeFromBoxedFunction<&maskedSelectBackwardBoxed>());
    cuda.impl("masked_select_backward",
              torch::CppFunction::makeFromBoxedFunction<&maskedSelectBackwardBoxed>());
    return true;
  }();
  static_cast<void>(kRegistered);
}

}  // namespace stowage::runtime
