// SPDX-License-Identifier: Apache-2.0
//
// How long the runs of a schedule took where they are: inside steps, beside copies, with the caches
// that their neighbours left. What `runtime/calibrate.h` measures of ops alone is corrected by it.
#ifndef STOWAGE_RUNTIME_RUN_TIMES_H_
#define STOWAGE_RUNTIME_RUN_TIMES_H_

#include <llvm/ADT/ArrayRef.h>

#include <optional>
#include <vector>

#include "ir/cost_table.h"
#include "ir/graph.h"
#include "ir/schedule.h"
#include "ir/units.h"

namespace stowage::runtime {

/// Times of each command, one per step; written by one thread.
class RunTimes {
 public:
  explicit RunTimes(size_t commands) : times_(commands) {}
  void add(ir::CommandId command, Nanoseconds time) { times_[command.index()].push_back(time); }
  /// By command: the median over the steps; nothing for what was not timed.
  std::vector<std::optional<Nanoseconds>> medians() const;

 private:
  std::vector<std::vector<Nanoseconds>> times_;
};

/// `table` with the times of runs in place of those of ops alone: per signature the mean over its
/// commands, re-runs included. `medians` by command of `schedule`.
ir::CostTable correctTimes(ir::CostTable table, const ir::Graph& graph,
                           const ir::Schedule& schedule,
                           llvm::ArrayRef<std::optional<Nanoseconds>> medians);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RUN_TIMES_H_
