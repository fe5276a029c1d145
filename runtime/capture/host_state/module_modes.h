// SPDX-License-Identifier: Apache-2.0
//
// Switches of a module that decide what its step does, beside its tensors: train() or eval() of
// each submodule, requires_grad of each parameter. A plan holds the step as it was captured, so a
// switch that is turned afterwards makes it another step.
// Inputs: the module, the tensors that capture knows. Reads flags only: cheap enough for each step.
// Not here: what host code of the closures depends on otherwise.
#ifndef STOWAGE_RUNTIME_CAPTURE_HOST_STATE_MODULE_MODES_H_
#define STOWAGE_RUNTIME_CAPTURE_HOST_STATE_MODULE_MODES_H_

#include <memory>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "runtime/capture/host_state/module_tensors.h"

namespace stowage::runtime {

class ModuleModes {
 public:
  ModuleModes() = default;
  /// `module` may be null.
  ModuleModes(const std::shared_ptr<torch::nn::Module>& module, const ModuleTensors& tensors);
  /// Errors: kPlanMismatch, naming the first parameter or submodule that is switched otherwise.
  ir::Error checkUnchanged() const;
  /// Switches everything to what it was.
  void putBack() const;

 private:
  struct Submodule {
    std::string name;
    std::shared_ptr<torch::nn::Module> module;
    bool trains;
  };
  struct Parameter {
    std::string name;
    at::Tensor tensor;
    bool requiresGrad;
  };
  std::vector<Submodule> submodules_;
  std::vector<Parameter> parameters_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_HOST_STATE_MODULE_MODES_H_
