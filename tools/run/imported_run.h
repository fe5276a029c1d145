// SPDX-License-Identifier: Apache-2.0
//
// An imported step made ready to run: its graph, and who gives what the graph cannot: first values
// of parameters and buffers from --weights, from the archive itself, or drawn for a trial run;
// learning rates from --lr or from the data file. What is missing is said before anything is
// measured or run. Not here: plans, batches, the runner.
#ifndef STOWAGE_TOOLS_RUN_IMPORTED_RUN_H_
#define STOWAGE_TOOLS_RUN_IMPORTED_RUN_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "runtime/capture/pt2/pt2_weights.h"
#include "runtime/runner/graph_step.h"
#include "runtime/training/batch.h"
#include "tools/models/model.h"

namespace stowage::tools {

struct ImportedRunOptions {
  std::vector<std::string> weights;  // safetensors; may be empty
  std::string archive;               // the .pt2; "": the one beside `folder`
  std::string folder;                // where the step's file is
  bool randomWeights = false;
  uint64_t seed = 0;
  std::optional<double> learningRate;
  bool hasData = false;  // a data file, which may have the learning rates
  bool isTrial = false;  // nothing shall be learned: a rate that nobody gives is 0
};

class ImportedRun {
 public:
  /// `graph` outlives the run. Errors: kInvalidArgument saying which flag gives what is missing;
  /// kPlanMismatch for an archive that is not the captured one; those of GraphStep::make.
  static ir::Expected<std::unique_ptr<ImportedRun>> open(const ir::Graph& graph,
                                                         const ImportedRunOptions& options);

  runtime::GraphStep& step() { return *step_; }
  /// What batches hold: the step's inputs, without the rates when --lr gives them.
  const std::vector<TrainingStep::Input>& inputs() const { return inputs_; }
  /// A batch with the learning rates where the step wants them.
  runtime::Batch withRates(runtime::Batch batch) const;
  /// "weights of step.pt2", for the answer.
  const std::string& origin() const { return origin_; }

 private:
  ir::Error openValues(const ImportedRunOptions& options);
  ir::Error openArchive(const std::string& path, const std::string& fingerprint);
  ir::Error findInputs(const ImportedRunOptions& options);
  std::vector<std::string> missingIn(bool constantsOnly) const;
  ir::Expected<at::Tensor> firstBytes(ir::StorageId storage) const;
  at::Tensor drawBytes(ir::StorageId storage) const;

  const ir::Graph* graph_ = nullptr;
  std::unique_ptr<runtime::GraphStep> step_;
  std::optional<runtime::ArchiveWeights> archive_;
  std::vector<TrainingStep::Input> inputs_;
  std::vector<std::optional<at::Tensor>> rates_;  // by input of the step
  std::string origin_;
  bool random_ = false;
  uint64_t seed_ = 0;
};

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_IMPORTED_RUN_H_
