// SPDX-License-Identifier: Apache-2.0
//
// The optimizers that a step's update uses: none, one, or several (a GAN's two). Not owned.
#ifndef STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OPTIMIZER_LIST_H_
#define STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OPTIMIZER_LIST_H_

#include <initializer_list>
#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace stowage::runtime {

class OptimizerList {
 public:
  OptimizerList() = default;
  /// Null: none.
  OptimizerList(torch::optim::Optimizer* only) {  // NOLINT(google-explicit-constructor)
    if (only != nullptr) all_.push_back(only);
  }
  /// `{&generator, &discriminator}`, in the order in which `update` steps them.
  OptimizerList(std::initializer_list<torch::optim::Optimizer*> all) : all_(all) {}

  bool empty() const { return all_.empty(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<torch::optim::Optimizer*> all_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OPTIMIZER_LIST_H_
