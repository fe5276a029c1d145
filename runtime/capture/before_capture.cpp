// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/before_capture.h"

#include <algorithm>

#include "runtime/torch_boundary.h"

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

BeforeCapture::BeforeCapture(const ModuleTensors& tensors, torch::optim::Optimizer* optimizer)
    : optimizer_(optimizer) {
  for (const ModuleTensor& entry : tensors.all()) {
    if (entry.role == ir::Role::kParameter) {
      gradients_.emplace_back(entry.tensor, entry.tensor.grad());
    }
  }
  if (optimizer == nullptr) return;
  numbers_ = OptimizerNumbers::of(*optimizer);
  for (const auto& [parameter, state] : optimizer->state()) {
    state_.push_back({parameter, state == nullptr ? nullptr : copyOf(*state)});
  }
}

void BeforeCapture::putBack() {
  for (auto& [parameter, gradient] : gradients_) parameter.mutable_grad() = gradient;
  if (optimizer_ == nullptr) return;
  putStateBack();
  numbers_->putBack(*optimizer_);
  forgetWorkingTensors(*optimizer_);
}

void BeforeCapture::putStateBack() {
  auto& live = optimizer_->state();
  std::vector<void*> added;
  for (const auto& entry : live) {
    const bool isOld = std::any_of(state_.begin(), state_.end(), [&](const State& state) {
      return state.parameter == entry.first;
    });
    if (!isOld) added.push_back(entry.first);
  }
  for (void* parameter : added) live.erase(parameter);
  for (State& state : state_) {
    if (state.copy != nullptr) live[state.parameter] = std::move(state.copy);
  }
}

}  // namespace stowage::runtime
