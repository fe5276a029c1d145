// SPDX-License-Identifier: Apache-2.0
//
// A planned training held against an unplanned one. In deterministic mode every bit must be the
// same. Without it libtorch does not repeat itself (attention's backward on a GPU adds in any
// order), so the unplanned training is done twice: what it repeats, the plan must repeat too. Two
// may agree by chance, so a difference is held against more of them before it counts. Of losses
// that they do not repeat, the plan's must still be near theirs; states that they do not repeat are
// not compared.
#ifndef STOWAGE_TOOLS_TRAINING_COMPARISON_H_
#define STOWAGE_TOOLS_TRAINING_COMPARISON_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "tools/training/training_run.h"

namespace stowage::tools {

struct Comparison {
  TrainingRecord eager;
  std::string difference;  // "": none where bits can be compared

  /// What all unplanned trainings have in common.
  struct Repeated {
    int trainings = 0;
    size_t compared = 0;  // losses, parameters, buffers, optimizer state
    size_t equal = 0;
    std::vector<std::string> ops;  // that do not repeat their bits: "aten.x.default (16)"
  };
  std::optional<Repeated> repeated;  // without deterministic mode
};

using UnplannedTraining = std::function<ir::Expected<TrainingRecord>()>;

/// `train` is called once in deterministic mode. Without it: twice, and where `graph` has ops that
/// need not repeat their bits, up to eight times until no difference is left that all trainings
/// agree on. Each must give as many losses as `planned` has. Errors: those of `train`.
ir::Expected<Comparison> compareWithUnplanned(const ir::Graph& graph, const TrainingRecord& planned,
                                              const UnplannedTraining& train);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_TRAINING_COMPARISON_H_
