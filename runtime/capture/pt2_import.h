// SPDX-License-Identifier: Apache-2.0
//
// Imports a training step that was exported from Python: a `.pt2` archive of torch.export, schema 8,
// whose graph is a whole step (forward, loss, gradients, update in place). No Python is needed, and
// no GPU for an archive that was traced for one.
// A path -> the graph, and what a run of it needs to know: which inputs are given anew each step,
// what the step returns, and the host numbers that are what they were when it was traced.
// The file `<archive without .pt2>.json`, where there is one, says what the inputs are and how
// parameters are called (README.md here); without it both follow from the archive, with neutral
// names.
// Refused, naming file and node: damaged or hostile files, other schema versions, symbolic shapes,
// steps that were made functional, ops that this libtorch does not know or that are made of others.
// Not here: values. The archives hold none of the parameters; what is inside one is named only.
#ifndef STOWAGE_RUNTIME_CAPTURE_PT2_IMPORT_H_
#define STOWAGE_RUNTIME_CAPTURE_PT2_IMPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/graph.h"
#include "ir/target.h"

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
  /// By position among the archive's inputs; invalid for one that is no tensor.
  std::vector<ir::ValueId> inputs;
  /// What the step returns, in order. One that no node writes is what the caller passed in.
  std::vector<ir::ValueId> outputs;
  /// The output that is the loss, if the step returns anything.
  std::optional<ir::ValueId> loss;
  /// Inputs that are learning rates (role input: bound anew each step). Empty: the rate is frozen.
  std::vector<ir::ValueId> learningRates;
  std::vector<FrozenScalar> frozenScalars;
};

struct ImportOptions {
  std::string sideFile;  // empty: the one beside the archive, if there is one
};

/// Errors: kIo, kParse, kUnsupported, with the file as place; kInvalidArgument when the archive was
/// traced for another kind of device than the target's.
ir::Expected<ImportedStep> importTrainingStep(const std::string& path, const ir::Target& target,
                                              const ImportOptions& options = {});

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_PT2_IMPORT_H_
