// SPDX-License-Identifier: Apache-2.0
//
// A step that counts how often its numbers are worked out, and is otherwise another one.
#ifndef STOWAGE_TESTS_SUPPORT_COUNTING_STEP_H_
#define STOWAGE_TESTS_SUPPORT_COUNTING_STEP_H_

#include <memory>
#include <vector>

#include "runtime/runner/runnable_step.h"

namespace stowage::tests {

class CountingStep final : public runtime::RunnableStep {
 public:
  explicit CountingStep(runtime::RunnableStep& step) : step_(step) {}

  int64_t asked = 0;         // calls of nextScalars
  bool countsItself = true;  // what countsSteps answers

  const ir::Graph& graph() const override { return step_.graph(); }
  const std::vector<ir::ValueId>& inputs() const override { return step_.inputs(); }
  const std::vector<ir::ValueId>& reports() const override { return step_.reports(); }
  bool keepsLayouts() const override { return step_.keepsLayouts(); }
  ir::Error checkUnchanged() const override { return step_.checkUnchanged(); }
  ir::Error beginSteps() override { return step_.beginSteps(); }
  ir::Expected<std::vector<runtime::ScalarValue>> nextScalars(
      const runtime::StepCheck& check) override {
    ++asked;
    return step_.nextScalars(check);
  }
  bool countsSteps() const override { return countsItself; }
  bool canBeChecked(int64_t step) const override { return step_.canBeChecked(step); }
  std::vector<ir::ValueId> valuesRead() const override { return step_.valuesRead(); }
  runtime::HostProgress hostProgress() const override { return step_.hostProgress(); }
  void setLearningRates(const std::vector<double>& rates) override {
    step_.setLearningRates(rates);
  }
  runtime::FirstValue firstValue(ir::StorageId storage) const override {
    return step_.firstValue(storage);
  }
  at::Tensor liveValue(ir::StorageId storage) const override { return step_.liveValue(storage); }
  ir::Error replayConstruction(const std::function<bool(ir::StorageId)>& wanted,
                               const Deliver& deliver) const override {
    return step_.replayConstruction(wanted, deliver);
  }
  ir::Expected<at::Tensor> makeState(ir::StorageId storage, const ValueOf& valueOf) const override {
    return step_.makeState(storage, valueOf);
  }
  ir::Expected<std::unique_ptr<runtime::LentState>> lend(const ValueOf& bytesOf) override {
    return step_.lend(bytesOf);
  }
  ir::Error storeTo(const ValueOf& bytesOf) override { return step_.storeTo(bytesOf); }

 private:
  runtime::RunnableStep& step_;
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_COUNTING_STEP_H_
