// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/host_state/libtorch_optimizer.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <utility>

#include "runtime/torch/adamw.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {
namespace {

namespace optim = torch::optim;

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
  const auto visitDefined = [&](const char* function, const at::Tensor& tensor) {
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

std::unique_ptr<optim::OptimizerParamState> copyOf(const optim::OptimizerParamState& state) {
  auto copy = callTorch("copying optimizer state", [&] { return state.clone(); });
  if (copy) return std::move(*copy);
  llvm::consumeError(copy.takeError());
  return nullptr;
}

struct LibtorchNumbers : StepOptimizer::Numbers {
  struct Steps {
    void* parameter;
    double count;
  };
  std::vector<std::unique_ptr<optim::OptimizerOptions>> options;  // null: of an unknown class
  std::vector<double> rates;
  std::vector<Steps> steps;
};

struct LibtorchState : StepOptimizer::SavedState {
  struct Entry {
    void* parameter;
    std::unique_ptr<optim::OptimizerParamState> copy;  // null: of a class that has no copies
  };
  std::vector<Entry> entries;
};

class LibtorchOptimizer : public StepOptimizer {
 public:
  explicit LibtorchOptimizer(optim::Optimizer& optimizer) : optimizer_(optimizer) {}

  /// LBFGS runs the loss as often as its line search wants.
  ir::Error checkUsable() const override {
    if (dynamic_cast<optim::LBFGS*>(&optimizer_) == nullptr) return ir::success();
    return ir::makeError(
        ir::ErrorCode::kUnsupported,
        "optimizer LBFGS runs the loss several times in a step and decides by its values when to "
        "stop, which a static plan cannot hold: train with Adam, AdamW, SGD, RMSprop or Adagrad, "
        "or run LBFGS with plain libtorch");
  }

  std::vector<at::Tensor> parameters() const override {
    std::vector<at::Tensor> all;
    for (const optim::OptimizerParamGroup& group : optimizer_.param_groups()) {
      all.insert(all.end(), group.params().begin(), group.params().end());
    }
    return all;
  }

  void forEachStateTensor(const at::Tensor& parameter, VisitState visit) const override {
    optim::OptimizerParamState* state = findState(parameter.unsafeGetTensorImpl());
    if (state != nullptr) visitState(*state, visit);
  }

  std::optional<double> stepCountOf(const at::Tensor& parameter) const override {
    std::optional<double> count;
    optim::OptimizerParamState* state = findState(parameter.unsafeGetTensorImpl());
    if (state == nullptr) return count;
    actOnCountedState(*state, [&](auto& counted) { count = static_cast<double>(counted.step()); });
    return count;
  }

  std::vector<double> learningRates() const override {
    std::vector<double> rates;
    for (const optim::OptimizerParamGroup& group : optimizer_.param_groups()) {
      rates.push_back(group.options().get_lr());
    }
    return rates;
  }

  void setLearningRates(llvm::ArrayRef<double> rates) override {
    for (size_t i = 0; i < rates.size() && i < optimizer_.param_groups().size(); ++i) {
      optimizer_.param_groups()[i].options().set_lr(rates[i]);
    }
  }

  std::unique_ptr<Numbers> numbers() const override {
    auto numbers = std::make_unique<LibtorchNumbers>();
    numbers->rates = learningRates();
    for (optim::OptimizerParamGroup& group : optimizer_.param_groups()) {
      numbers->options.push_back(isKnown(group.options()) ? group.options().clone() : nullptr);
    }
    forEachCount([&](void* key, auto& counted) {
      numbers->steps.push_back({key, static_cast<double>(counted.step())});
    });
    return numbers;
  }

  void putBack(const Numbers& numbers) override {
    const auto& old = static_cast<const LibtorchNumbers&>(numbers);
    setLearningRates(old.rates);
    for (size_t i = 0; i < old.options.size() && i < optimizer_.param_groups().size(); ++i) {
      if (old.options[i] == nullptr) continue;
      actOnOptions(optimizer_.param_groups()[i].options(), *old.options[i],
                   [](auto& live, auto& saved) { live = saved; });
    }
    forEachCount([&](void* key, auto& counted) {
      const auto found = std::find_if(old.steps.begin(), old.steps.end(),
                                      [&](const auto& steps) { return steps.parameter == key; });
      const double count = found == old.steps.end() ? 0 : found->count;
      counted.step(static_cast<std::decay_t<decltype(counted.step())>>(count));
    });
  }

  bool sameOptions(const Numbers& some, const Numbers& others) const override {
    const auto& a = static_cast<const LibtorchNumbers&>(some);
    const auto& b = static_cast<const LibtorchNumbers&>(others);
    if (a.rates != b.rates) return false;
    for (size_t i = 0; i < a.options.size(); ++i) {
      if (a.options[i] == nullptr || b.options[i] == nullptr) continue;
      bool same = true;
      actOnOptions(*b.options[i], *a.options[i],
                   [&](auto& live, auto& saved) { same = live == saved; });
      if (!same) return false;
    }
    return true;
  }

  bool isComplete(const Numbers& numbers) const override {
    const auto& options = static_cast<const LibtorchNumbers&>(numbers).options;
    return std::none_of(options.begin(), options.end(),
                        [](const auto& one) { return one == nullptr; });
  }

  std::unique_ptr<SavedState> saveState() const override {
    auto saved = std::make_unique<LibtorchState>();
    for (const auto& [parameter, state] : optimizer_.state()) {
      saved->entries.push_back({parameter, state == nullptr ? nullptr : copyOf(*state)});
    }
    return saved;
  }

  void putStateBack(SavedState& saved) override {
    auto& entries = static_cast<LibtorchState&>(saved).entries;
    auto& live = optimizer_.state();
    std::vector<void*> added;
    for (const auto& entry : live) {
      const bool isOld = std::any_of(entries.begin(), entries.end(),
                                     [&](const auto& old) { return old.parameter == entry.first; });
      if (!isOld) added.push_back(entry.first);
    }
    for (void* parameter : added) live.erase(parameter);
    for (LibtorchState::Entry& entry : entries) {
      if (entry.copy != nullptr) live[entry.parameter] = std::move(entry.copy);
    }
  }

  void forgetWorkingTensors() override {
    if (auto* fused = dynamic_cast<stowage::AdamW*>(&optimizer_)) fused->forgetLearningRates();
  }

  void step() override { optimizer_.step(); }

 private:
  optim::OptimizerParamState* findState(void* parameter) const {
    const auto found = optimizer_.state().find(parameter);
    return found == optimizer_.state().end() ? nullptr : found->second.get();
  }

  /// Calls `visit(key, state)` for every parameter whose steps are counted on the host.
  template <typename Visit>
  void forEachCount(Visit visit) const {
    for (const at::Tensor& parameter : parameters()) {
      void* const key = parameter.unsafeGetTensorImpl();
      optim::OptimizerParamState* state = findState(key);
      if (state == nullptr) continue;
      actOnCountedState(*state, [&](auto& counted) { visit(key, counted); });
    }
  }

  optim::Optimizer& optimizer_;
};

}  // namespace

std::shared_ptr<StepOptimizer> viewLibtorchOptimizer(torch::optim::Optimizer& optimizer) {
  return std::make_shared<LibtorchOptimizer>(optimizer);
}

}  // namespace stowage::runtime
