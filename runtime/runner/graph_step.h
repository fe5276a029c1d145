// SPDX-License-Identifier: Apache-2.0
//
// A step of which only the graph is there: one that was imported, and read from its file again. The
// graph says what is given anew each step and what is reported; parameters, buffers and constants
// begin as the caller says, optimizer state at zero, a master weight as its parameter. Host numbers
// stay what they were when the step was traced. Not here: files, archives, plans.
#ifndef STOWAGE_RUNTIME_RUNNER_GRAPH_STEP_H_
#define STOWAGE_RUNTIME_RUNNER_GRAPH_STEP_H_

#include <memory>
#include <string>
#include <vector>

#include "runtime/runner/runnable_step.h"

namespace stowage::runtime {

class GraphStep : public RunnableStep {
 public:
  /// uint8 [n], or an error that names the storage.
  using FirstBytes = std::function<ir::Expected<at::Tensor>(ir::StorageId)>;

  /// The first report is the loss: the output of that name, else the first that is one number.
  /// `graph` outlives the step. Errors: kUnsupported when nothing is reported that is one number,
  /// for inputs that are not dense, or for state whose first value nobody can know.
  static ir::Expected<std::unique_ptr<GraphStep>> make(const ir::Graph& graph,
                                                       FirstBytes firstBytes);

  /// The inputs that only the optimizer reads, one floating-point number each.
  const std::vector<ir::ValueId>& learningRates() const { return learningRates_; }
  /// Storages that begin as the caller says, ascending.
  std::vector<ir::StorageId> givenStorages() const;

  const ir::Graph& graph() const override { return graph_; }
  const std::vector<ir::ValueId>& inputs() const override { return inputs_; }
  const std::vector<ir::ValueId>& reports() const override { return reports_; }
  ir::Expected<std::vector<ScalarValue>> nextScalars(const StepCheck& check) override;
  bool countsSteps() const override { return false; }
  HostProgress hostProgress() const override { return {}; }
  void setLearningRates(const std::vector<double>& /*rates*/) override {}
  FirstValue firstValue(ir::StorageId /*storage*/) const override { return FirstValue::kStep; }
  at::Tensor liveValue(ir::StorageId storage) const override;
  ir::Error replayConstruction(const std::function<bool(ir::StorageId)>& wanted,
                               const Deliver& deliver) const override;
  ir::Expected<at::Tensor> makeState(ir::StorageId storage, const ValueOf& valueOf) const override;
  ir::Error storeTo(const ValueOf& bytesOf) override;

 private:
  GraphStep(const ir::Graph& graph, FirstBytes firstBytes)
      : graph_(graph), firstBytes_(std::move(firstBytes)) {}
  ir::Error findInputs();
  ir::Error findReports();
  ir::Error checkState() const;
  ir::StorageId parameterOf(ir::StorageId master) const;

  const ir::Graph& graph_;
  FirstBytes firstBytes_;
  std::vector<ir::ValueId> inputs_, reports_, learningRates_;
};

/// Below which number random values of an integer input must stay, from the ops that the input and
/// what is made of it go to; 2 where nothing says. `isIndex`: an op looks rows up by the input
/// itself, so that every value of it must be from 0 on and below.
struct InputBound {
  int64_t bound = 2;
  bool isIndex = false;
};
InputBound findInputBound(const ir::Graph& graph, ir::StorageId input);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RUNNER_GRAPH_STEP_H_
