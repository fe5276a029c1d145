// SPDX-License-Identifier: Apache-2.0
#include "tools/models/checkpointed.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace stowage::tools {

namespace {

struct KeptBlock : torch::CustomClassHolder {
  explicit KeptBlock(Block kept) : block(std::move(kept)) {}
  Block block;
};

class Checkpoint : public torch::autograd::Function<Checkpoint> {
 public:
  using Context = torch::autograd::AutogradContext;

  static at::Tensor forward(Context* context, const at::Tensor& x, const Block& block) {
    context->save_for_backward({x});
    context->saved_data["block"] = c10::IValue::make_capsule(c10::make_intrusive<KeptBlock>(block));
    return block(x);
  }

  static torch::autograd::variable_list backward(Context* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_(true);
    const auto kept = context->saved_data["block"].toCapsule();
    at::Tensor y;
    {
      const at::AutoGradMode enabled(true);
      y = static_cast<KeptBlock*>(kept.get())->block(x);
    }
    torch::autograd::backward({y}, {gradients[0]});
    return {x.grad(), at::Tensor()};
  }
};

}  // namespace

at::Tensor checkpointed(const Block& block, const at::Tensor& x) {
  // Behind a frozen embedding nothing asks for the input's gradient, but the block's weights do.
  return Checkpoint::apply(x.requires_grad() ? x : x.detach().requires_grad_(true), block);
}

}  // namespace stowage::tools
