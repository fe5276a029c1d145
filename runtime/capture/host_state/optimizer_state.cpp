// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/host_state/optimizer_state.h"

#include <algorithm>
#include <utility>

#include "runtime/capture/host_state/libtorch_optimizer.h"

namespace stowage::runtime {

OptimizerList::OptimizerList(std::initializer_list<torch::optim::Optimizer*> all) {
  for (torch::optim::Optimizer* optimizer : all) {
    if (optimizer != nullptr) all_.push_back(viewLibtorchOptimizer(*optimizer));
  }
}

void forEachStateTensor(const OptimizerList& optimizers, const at::Tensor& parameter,
                        VisitState visit) {
  for (const auto& optimizer : optimizers) optimizer->forEachStateTensor(parameter, visit);
}

bool isIn(const OptimizerList& optimizers, const at::Tensor& parameter) {
  return std::any_of(optimizers.begin(), optimizers.end(), [&](const auto& optimizer) {
    const std::vector<at::Tensor> all = optimizer->parameters();
    return std::any_of(all.begin(), all.end(),
                       [&](const at::Tensor& one) { return one.is_same(parameter); });
  });
}

std::optional<double> stepCountOf(const OptimizerList& optimizers, const at::Tensor& parameter) {
  for (const auto& optimizer : optimizers) {
    if (const std::optional<double> count = optimizer->stepCountOf(parameter)) return count;
  }
  return std::nullopt;
}

void forgetWorkingTensors(const OptimizerList& optimizers) {
  for (const auto& optimizer : optimizers) optimizer->forgetWorkingTensors();
}

OptimizerNumbers OptimizerNumbers::of(const OptimizerList& optimizers) {
  OptimizerNumbers numbers;
  numbers.optimizers_ = optimizers;
  for (const auto& optimizer : optimizers) numbers.numbers_.push_back(optimizer->numbers());
  return numbers;
}

void OptimizerNumbers::putBack() const {
  size_t position = 0;
  for (const auto& optimizer : optimizers_) optimizer->putBack(*numbers_[position++]);
}

bool OptimizerNumbers::equals(const OptimizerNumbers& other) const {
  size_t position = 0;
  return std::all_of(optimizers_.begin(), optimizers_.end(), [&](const auto& optimizer) {
    const size_t at = position++;
    return optimizer->sameOptions(*numbers_[at], *other.numbers_[at]);
  });
}

bool OptimizerNumbers::isComplete() const {
  size_t position = 0;
  return std::all_of(optimizers_.begin(), optimizers_.end(), [&](const auto& optimizer) {
    return optimizer->isComplete(*numbers_[position++]);
  });
}

}  // namespace stowage::runtime
