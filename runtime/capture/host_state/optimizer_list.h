// SPDX-License-Identifier: Apache-2.0
//
// The optimizers that a step's update uses: none, one, or several (a GAN's two).
#ifndef STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OPTIMIZER_LIST_H_
#define STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OPTIMIZER_LIST_H_

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace stowage::runtime {

class StepOptimizer;

class OptimizerList {
 public:
  OptimizerList() = default;
  /// Null: none. Those of libtorch are not owned.
  OptimizerList(torch::optim::Optimizer* only)  // NOLINT(google-explicit-constructor)
      : OptimizerList({only}) {}
  /// `{&generator, &discriminator}`, in the order in which `update` steps them.
  OptimizerList(std::initializer_list<torch::optim::Optimizer*> all);
  /// Of any language.
  explicit OptimizerList(std::vector<std::shared_ptr<StepOptimizer>> all) : all_(std::move(all)) {}

  bool empty() const { return all_.empty(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<std::shared_ptr<StepOptimizer>> all_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_HOST_STATE_OPTIMIZER_LIST_H_
