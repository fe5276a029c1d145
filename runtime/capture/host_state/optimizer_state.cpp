// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/host_state/optimizer_state.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>

#include "runtime/torch/adamw.h"

namespace stowage::runtime {
namespace {

namespace optim = torch::optim;

optim::OptimizerParamState* findState(optim::Optimizer& optimizer, void* parameter) {
  const auto found = optimizer.state().find(parameter);
  return found == optimizer.state().end() ? nullptr : found->second.get();
}

/// Calls `act` with `object` as the first of `Types` that it is. False when it is none of them.
template <typename... Types, typename Base, typename Act>
bool actOnFirst(Base& object, Act act) {
  const auto attempt = [&](auto* derived) {
    if (derived == nullptr) return false;
    act(*derived);
    return true;
  };
  return (attempt(dynamic_cast<Types*>(&object)) || ...);
}

template <typename Act>
bool actOnAdamState(optim::OptimizerParamState& state, Act act) {
  return actOnFirst<optim::AdamParamState, optim::AdamWParamState>(state, act);
}

template <typename Act>
bool actOnCountedState(optim::OptimizerParamState& state, Act act) {
  return actOnFirst<optim::AdamParamState, optim::AdamWParamState, optim::RMSpropParamState,
                    optim::AdagradParamState>(state, act);
}

/// Both options as the same known type. False when they are of an unknown one.
template <typename Act>
bool actOnOptions(optim::OptimizerOptions& live, optim::OptimizerOptions& saved, Act act) {
  return actOnFirst<optim::AdamOptions, optim::AdamWOptions, optim::SGDOptions,
                    optim::RMSpropOptions, optim::AdagradOptions>(live, [&](auto& options) {
    act(options, static_cast<std::remove_reference_t<decltype(options)>&>(saved));
  });
}

bool isKnown(optim::OptimizerOptions& options) {
  return actOnOptions(options, options, [](auto&, auto&) {});
}

void visitState(optim::OptimizerParamState& state, VisitState visit) {
  const auto visitDefined = [&](const char* function, at::Tensor& tensor) {
    if (tensor.defined()) visit(function, ir::Role::kState, tensor);
  };
  actOnAdamState(state, [&](auto& adam) {
    visitDefined("m", adam.exp_avg());
    visitDefined("v", adam.exp_avg_sq());
    visitDefined("vmax", adam.max_exp_avg_sq());
  });
  actOnFirst<optim::SGDParamState>(
      state, [&](auto& sgd) { visitDefined("momentum", sgd.momentum_buffer()); });
  actOnFirst<optim::AdagradParamState>(state, [&](auto& ada) { visitDefined("sum", ada.sum()); });
  actOnFirst<stowage::AdamWParamState>(state, [&](auto& fused) {
    visitDefined("m", fused.exp_avg());
    visitDefined("v", fused.exp_avg_sq());
    if (fused.step().defined()) visit("step", ir::Role::kStepCounter, fused.step());
    if (fused.master().defined()) visit("master", ir::Role::kMaster, fused.master());
  });
  actOnFirst<optim::RMSpropParamState>(state, [&](auto& rms) {
    visitDefined("v", rms.square_avg());
    visitDefined("momentum", rms.momentum_buffer());
    visitDefined("mean", rms.grad_avg());
  });
}

/// Calls `visit(optimizer, key, state or null)` for every parameter of every group.
template <typename Visit>
void forEachParameter(const OptimizerList& optimizers, Visit visit) {
  for (optim::Optimizer* optimizer : optimizers) {
    for (optim::OptimizerParamGroup& group : optimizer->param_groups()) {
      for (const at::Tensor& parameter : group.params()) {
        void* const key = parameter.unsafeGetTensorImpl();
        visit(optimizer, key, findState(*optimizer, key));
      }
    }
  }
}

}  // namespace

void forEachStateTensor(const OptimizerList& optimizers, const at::Tensor& parameter,
                        VisitState visit) {
  for (optim::Optimizer* optimizer : optimizers) {
    optim::OptimizerParamState* state = findState(*optimizer, parameter.unsafeGetTensorImpl());
    if (state != nullptr) visitState(*state, visit);
  }
}

bool isIn(const OptimizerList& optimizers, const at::Tensor& parameter) {
  bool found = false;
  forEachParameter(optimizers, [&](const auto*, const void* key, const auto*) {
    found = found || key == parameter.unsafeGetTensorImpl();
  });
  return found;
}

std::optional<double> stepCountOf(const OptimizerList& optimizers, const at::Tensor& parameter) {
  std::optional<double> count;
  for (optim::Optimizer* optimizer : optimizers) {
    optim::OptimizerParamState* state = findState(*optimizer, parameter.unsafeGetTensorImpl());
    if (state == nullptr || count) continue;
    actOnCountedState(*state, [&](auto& counted) { count = static_cast<double>(counted.step()); });
  }
  return count;
}

void forgetWorkingTensors(const OptimizerList& optimizers) {
  for (optim::Optimizer* optimizer : optimizers) {
    if (auto* fused = dynamic_cast<stowage::AdamW*>(optimizer)) fused->forgetLearningRates();
  }
}

OptimizerNumbers OptimizerNumbers::of(const OptimizerList& optimizers) {
  OptimizerNumbers numbers;
  for (optim::Optimizer* optimizer : optimizers) {
    for (optim::OptimizerParamGroup& group : optimizer->param_groups()) {
      const bool known = isKnown(group.options());
      numbers.options_.push_back(known ? group.options().clone() : nullptr);
      numbers.rates_.push_back(group.options().get_lr());
    }
  }
  forEachParameter(optimizers, [&](const auto* optimizer, void* key, auto* state) {
    if (state == nullptr) return;
    actOnCountedState(*state, [&](auto& counted) {
      numbers.steps_.push_back({optimizer, key, static_cast<double>(counted.step())});
    });
  });
  return numbers;
}

void OptimizerNumbers::putBack(const OptimizerList& optimizers) const {
  size_t position = 0;
  for (optim::Optimizer* optimizer : optimizers) {
    for (optim::OptimizerParamGroup& group : optimizer->param_groups()) {
      if (position >= options_.size()) break;
      const auto& saved = options_[position];
      group.options().set_lr(rates_[position]);
      if (saved != nullptr) {
        actOnOptions(group.options(), *saved, [](auto& live, auto& old) { live = old; });
      }
      ++position;
    }
  }
  forEachParameter(optimizers, [&](const auto* optimizer, const void* key, auto* state) {
    if (state == nullptr) return;
    const auto found = std::find_if(steps_.begin(), steps_.end(), [&](const Steps& steps) {
      return steps.optimizer == optimizer && steps.parameter == key;
    });
    const double count = found == steps_.end() ? 0 : found->count;
    actOnCountedState(*state, [&](auto& counted) {
      counted.step(static_cast<std::decay_t<decltype(counted.step())>>(count));
    });
  });
}

bool OptimizerNumbers::isComplete() const {
  return std::none_of(options_.begin(), options_.end(),
                      [](const auto& options) { return options == nullptr; });
}

bool OptimizerNumbers::equals(const OptimizerNumbers& other) const {
  if (other.rates_ != rates_) return false;
  for (size_t i = 0; i < options_.size(); ++i) {
    if (options_[i] == nullptr || other.options_[i] == nullptr) continue;
    bool same = true;
    actOnOptions(*other.options_[i], *options_[i],
                 [&](auto& live, auto& saved) { same = live == saved; });
    if (!same) return false;
  }
  return true;
}

}  // namespace stowage::runtime
