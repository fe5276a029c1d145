// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/host_state/before_capture.h"

namespace stowage::runtime {

BeforeCapture::BeforeCapture(const ModuleTensors& tensors, const OptimizerList& optimizers)
    : optimizers_(optimizers), numbers_(OptimizerNumbers::of(optimizers)) {
  for (const ModuleTensor& entry : tensors.all()) {
    if (entry.role == ir::Role::kParameter) {
      gradients_.emplace_back(entry.tensor, entry.tensor.grad());
    }
  }
  for (const auto& optimizer : optimizers) state_.push_back(optimizer->saveState());
}

void BeforeCapture::putBack() {
  for (auto& [parameter, gradient] : gradients_) parameter.mutable_grad() = gradient;
  size_t position = 0;
  for (const auto& optimizer : optimizers_) optimizer->putStateBack(*state_[position++]);
  numbers_.putBack();
  forgetWorkingTensors(optimizers_);
}

}  // namespace stowage::runtime
