// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/binding/python_optimizer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace stowage::python {
namespace {

/// A snapshot that Python keeps under a number until this goes.
struct Kept {
  Kept(PythonCall pythonCall, int64_t number) : call(pythonCall), snapshot(number) {}
  ~Kept() { call.quietly("drop", snapshot); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  PythonCall call;
  int64_t snapshot;
};

struct KeptNumbers : runtime::StepOptimizer::Numbers, Kept {
  using Kept::Kept;
};
struct KeptState : runtime::StepOptimizer::SavedState, Kept {
  using Kept::Kept;
};

class PythonOptimizer : public runtime::StepOptimizer {
 public:
  PythonOptimizer(PythonCall call, int64_t index, std::vector<at::Tensor> parameters,
                  PythonAnswer& answer)
      : call_(call), index_(index), parameters_(std::move(parameters)), answer_(answer) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      positions_.emplace(parameters_[i].unsafeGetTensorImpl(), static_cast<int64_t>(i));
    }
  }

  // Python refuses what cannot be captured before it comes here.
  ir::Error checkUsable() const override { return ir::success(); }
  std::vector<at::Tensor> parameters() const override { return parameters_; }

  void forEachStateTensor(const at::Tensor& parameter, runtime::VisitState visit) const override {
    const auto found = positions_.find(parameter.unsafeGetTensorImpl());
    if (found == positions_.end()) return;
    ask("state_of", found->second);
    const PythonAnswer given = std::exchange(answer_, {});
    for (size_t i = 0; i < given.tensors.size(); ++i) {
      const bool isCounter = given.names[i] == "step";
      visit(given.names[i], isCounter ? ir::Role::kStepCounter : ir::Role::kState,
            given.tensors[i]);
    }
  }

  std::optional<double> stepCountOf(const at::Tensor& parameter) const override {
    const auto found = positions_.find(parameter.unsafeGetTensorImpl());
    if (found == positions_.end()) return std::nullopt;
    ask("step_count_of", found->second);
    if (answer_.numbers.empty()) return std::nullopt;
    return answer_.numbers.front();
  }

  std::vector<double> learningRates() const override {
    ask("learning_rates");
    return answer_.numbers;
  }
  void setLearningRates(llvm::ArrayRef<double> rates) override {
    answer_.clear();
    answer_.numbers.assign(rates.begin(), rates.end());
    call_("set_learning_rates", index_);
  }

  std::unique_ptr<Numbers> numbers() const override {
    ask("take_numbers");
    return std::make_unique<KeptNumbers>(call_, snapshotOf(answer_));
  }
  // Both also when something else has failed: Python reports what goes wrong in them itself.
  void putBack(const Numbers& numbers) override {
    call_.quietly("put_numbers_back", index_, static_cast<const KeptNumbers&>(numbers).snapshot);
  }
  bool sameOptions(const Numbers& some, const Numbers& others) const override {
    ask("same_options", static_cast<const KeptNumbers&>(some).snapshot,
        static_cast<const KeptNumbers&>(others).snapshot);
    return answer_.numbers.at(0) != 0;
  }
  bool isComplete(const Numbers& /*numbers*/) const override { return true; }

  std::unique_ptr<SavedState> saveState() const override {
    ask("take_state");
    return std::make_unique<KeptState>(call_, snapshotOf(answer_));
  }
  void putStateBack(SavedState& saved) override {
    call_.quietly("put_state_back", index_, static_cast<const KeptState&>(saved).snapshot);
  }

  void step() override { call_("step", index_); }

 private:
  void ask(const char* what, int64_t second = 0) const {
    answer_.clear();
    call_(what, index_, second);
  }
  void ask(const char* what, int64_t first, int64_t second) const {
    answer_.clear();
    call_(what, first, second);
  }
  static int64_t snapshotOf(const PythonAnswer& answer) {
    return static_cast<int64_t>(answer.numbers.at(0));
  }

  PythonCall call_;
  int64_t index_;
  std::vector<at::Tensor> parameters_;
  std::unordered_map<const c10::TensorImpl*, int64_t> positions_;
  PythonAnswer& answer_;
};

}  // namespace

std::shared_ptr<runtime::StepOptimizer> makePythonOptimizer(PythonCall call, int64_t index,
                                                            std::vector<at::Tensor> parameters,
                                                            PythonAnswer& answer) {
  return std::make_shared<PythonOptimizer>(call, index, std::move(parameters), answer);
}

}  // namespace stowage::python
