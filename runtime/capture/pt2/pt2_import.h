// SPDX-License-Identifier: Apache-2.0
//
// Imports a training step that was exported from Python: a `.pt2` archive of torch.export, schema
// 8, whose graph is a whole step (forward, loss, gradients, update in place). No Python is needed,
// and no GPU for an archive that was traced for one. A path -> the graph, and what a run of it
// needs to know, as a captured step says it (capture.h): `inputs` are given anew each step,
// `reports` are what the step returns. There are no step scalars: the host numbers are what they
// were when it was traced, and listed. The file `<archive without .pt2>.json`, where there is one,
// says what the inputs are and how parameters are called (README.md here); without it both follow
// from the archive, with neutral names. Refused, naming file and node: damaged or hostile files,
// other schema versions, symbolic shapes, steps that were made functional, ops that this libtorch
// does not know or that are made of others. Not here: values
// (pt2_weights.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_PT2_IMPORT_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_PT2_IMPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"

namespace stowage::runtime {

/// A host number of the optimizer that the archive holds as it was when the step was traced. A
/// learning rate or a bias correction among them cannot change from step to step.
struct FrozenScalar {
  ir::NodeId node;
  uint32_t argument = 0;  // position in the node's arguments
  int32_t element = -1;   // in a list of numbers
  std::string name;       // the argument's, in the op's schema: "lr", "beta1", "eps"
  double value = 0;
};

struct ImportedStep {
  ir::Graph graph;
  /// What is bound anew each step, in order: batches, learning rates.
  std::vector<ir::ValueId> inputs;
  /// What the step returns, in order; without what no node writes, which the caller has.
  std::vector<ir::ValueId> reports;
  /// The report that is the loss, if there is any.
  std::optional<ir::ValueId> loss;
  /// The inputs that are learning rates. Empty: the rate is frozen.
  std::vector<ir::ValueId> learningRates;
  std::vector<FrozenScalar> frozenScalars;
  /// By position among the archive's inputs, state included; invalid for one that is no tensor.
  std::vector<ir::ValueId> arguments;
};

struct ImportOptions {
  std::string sideFile;  // empty: the one beside the archive, if there is one
};

/// Errors: kIo, kParse, kUnsupported, with the file as place; kInvalidArgument when the archive was
/// traced for another kind of device than the target's.
ir::Expected<ImportedStep> importTrainingStep(const std::string& path, const ir::Target& target,
                                              const ImportOptions& options = {});

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_PT2_IMPORT_H_
