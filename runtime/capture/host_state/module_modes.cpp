// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/host_state/module_modes.h"

#include <torch/nn/module.h>

namespace stowage::runtime {
namespace {

ir::Error stepChanged(const std::string& what) {
  return ir::makeError(ir::ErrorCode::kPlanMismatch,
                       "the step changed: " + what + "; change it back, or capture again");
}

const char* modeName(bool trains) { return trains ? "train()" : "eval()"; }

}  // namespace

ModuleModes::ModuleModes(const std::shared_ptr<torch::nn::Module>& module,
                         const ModuleTensors& tensors) {
  if (module != nullptr) {
    for (const auto& item : module->named_modules()) {
      submodules_.push_back({item.key(), item.value(), item.value()->is_training()});
    }
  }
  for (const ModuleTensor& entry : tensors.all()) {
    if (entry.role != ir::Role::kParameter) continue;
    parameters_.push_back({entry.name, entry.tensor, entry.tensor.requires_grad()});
  }
}

ir::Error ModuleModes::checkUnchanged() const {
  for (const Submodule& entry : submodules_) {
    if (entry.module->is_training() == entry.trains) continue;
    const std::string name = entry.name.empty() ? "the module" : "submodule '" + entry.name + "'";
    return stepChanged(name + " is in " + modeName(!entry.trains) + ", captured in " +
                       modeName(entry.trains));
  }
  for (const Parameter& entry : parameters_) {
    if (entry.tensor.requires_grad() == entry.requiresGrad) continue;
    return stepChanged("parameter '" + entry.name + "' " +
                       (entry.requiresGrad ? "is frozen, captured with requires_grad"
                                           : "has requires_grad, captured frozen"));
  }
  return ir::success();
}

void ModuleModes::putBack() const {
  // Parents come first: train() of one switches all below it.
  for (const Submodule& entry : submodules_) {
    if (entry.module->is_training() != entry.trains) entry.module->train(entry.trains);
  }
  for (const Parameter& entry : parameters_) {
    if (entry.tensor.requires_grad() == entry.requiresGrad) continue;
    entry.tensor.set_requires_grad(entry.requiresGrad);
  }
}

}  // namespace stowage::runtime
