// SPDX-License-Identifier: Apache-2.0
//
// State that a step writes outside of its updates: running statistics, means that a loss keeps. It
// changes while the step can still be refused, so its bytes are kept until the updates begin.
// A device with a plan's state in place -> copies on the host -> the same bytes again.
// Not here: when a step may be refused (scalar_feed.h).
#ifndef STOWAGE_RUNTIME_EXECUTOR_LOSS_STATE_H_
#define STOWAGE_RUNTIME_EXECUTOR_LOSS_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "runtime/executor/device.h"

namespace stowage::runtime {

class LossState {
 public:
  /// All outlive it.
  LossState(Device& device, const ir::Graph& graph, const ir::Schedule& schedule,
            const std::vector<ir::StorageId>& written)
      : device_(device), graph_(graph), schedule_(schedule), written_(written) {}

  /// Between two steps: waits for everything enqueued, then copies.
  ir::Error save();
  /// What was saved is of an earlier step.
  void forget() { saved_.clear(); }
  /// After everything enqueued is done. Returns what to add to "the state is that of the step
  /// before": names what could not be put back; empty when all of it was.
  std::string restore();

 private:
  bool putBack(size_t index);
  const ir::BoundaryEntry* boundaryOf(ir::StorageId storage) const;

  Device& device_;
  const ir::Graph& graph_;
  const ir::Schedule& schedule_;
  const std::vector<ir::StorageId>& written_;
  std::vector<std::vector<uint8_t>> saved_;  // by written_; empty when nothing was saved
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_LOSS_STATE_H_
