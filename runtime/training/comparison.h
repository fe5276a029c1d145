// SPDX-License-Identifier: Apache-2.0
//
// Compares a planned training with an unplanned one. In deterministic mode every bit must be equal.
// Without it libtorch does not repeat all bits (attention's backward on a GPU adds in any order),
// so the unplanned training is run twice: bits that both have, the planned one must have too. Two
// may agree by chance, so a difference counts only when further unplanned trainings confirm it.
// Losses that are not repeated must be near those of the unplanned trainings; such state is not
// compared.
#ifndef STOWAGE_RUNTIME_TRAINING_COMPARISON_H_
#define STOWAGE_RUNTIME_TRAINING_COMPARISON_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "runtime/training/training_record.h"

namespace stowage::runtime {

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

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_COMPARISON_H_
