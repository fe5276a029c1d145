// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/host_state/before_capture.h"

#include <algorithm>

#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {
namespace {

using torch::optim::OptimizerParamState;

std::unique_ptr<OptimizerParamState> copyOf(const OptimizerParamState& state) {
  auto copy = callTorch("copying optimizer state", [&] { return state.clone(); });
  if (copy) return std::move(*copy);
  llvm::consumeError(copy.takeError());
  return nullptr;
}

}  // namespace

BeforeCapture::BeforeCapture(const ModuleTensors& tensors, const OptimizerList& optimizers)
    : optimizers_(optimizers), numbers_(OptimizerNumbers::of(optimizers)) {
  for (const ModuleTensor& entry : tensors.all()) {
    if (entry.role == ir::Role::kParameter) {
      gradients_.emplace_back(entry.tensor, entry.tensor.grad());
    }
  }
  for (torch::optim::Optimizer* optimizer : optimizers) {
    for (const auto& [parameter, state] : optimizer->state()) {
      state_.push_back({optimizer, parameter, state == nullptr ? nullptr : copyOf(*state)});
    }
  }
}

void BeforeCapture::putBack() {
  for (auto& [parameter, gradient] : gradients_) parameter.mutable_grad() = gradient;
  for (torch::optim::Optimizer* optimizer : optimizers_) putStateBack(*optimizer);
  numbers_.putBack(optimizers_);
  forgetWorkingTensors(optimizers_);
}

void BeforeCapture::putStateBack(torch::optim::Optimizer& optimizer) {
  auto& live = optimizer.state();
  std::vector<void*> added;
  for (const auto& entry : live) {
    const bool isOld = std::any_of(state_.begin(), state_.end(), [&](const State& state) {
      return state.optimizer == &optimizer && state.parameter == entry.first;
    });
    if (!isOld) added.push_back(entry.first);
  }
  for (void* parameter : added) live.erase(parameter);
  for (State& state : state_) {
    if (state.optimizer != &optimizer || state.copy == nullptr) continue;
    live[state.parameter] = std::move(state.copy);
  }
}

}  // namespace stowage::runtime
