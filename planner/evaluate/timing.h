// SPDX-License-Identifier: Apache-2.0
//
// The rules of time, on plain numbers: streams are first in, first out; a command starts when its
// stream's predecessor and all its waits are over and the launch thread has enqueued it; steps
// follow each other until they repeat.
// computeTimeline (a schedule's times) and evaluate (a timetable's) are both made of this.
#ifndef STOWAGE_PLANNER_EVALUATE_TIMING_H_
#define STOWAGE_PLANNER_EVALUATE_TIMING_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <vector>

#include "ir/costs/cost_table.h"
#include "ir/schedule/schedule.h"
#include "planner/evaluate/dependencies.h"
#include "planner/evaluate/rate_shares.h"
#include "planner/evaluate/timeline.h"

namespace stowage::planner {

/// How long a command takes: a node's work, on the device or the host, or latency + rounded bytes /
/// bandwidth of the engine.
Nanoseconds commandTime(const ir::Graph& graph, llvm::ArrayRef<ir::Residency> residencies,
                        const ir::Command& command, const ir::NodeCosts& costs, int64_t alignBytes);

/// Launch overhead of a step's commands. The launch thread enqueues them one by one, up to two
/// steps ahead of the device. It launches a CUDA graph in one go, and updates only when the step's
/// scalars are there. A second thread computes the scalars, from when the launch thread begins the
/// step. Not counted: what a caller waits for between two steps (a place for the next inputs,
/// outputs).
struct LaunchOverheads {
  std::vector<int64_t> durations;  // by command; empty: no launch overhead
  size_t firstOutsideGraph = 0;    // the commands before it are one CUDA graph
  size_t firstUpdate = 0;
  int64_t scalars = 0;  // time to compute the step's scalars
};

/// The first command that updates or takes a step scalar; the number of commands: none.
size_t findUpdate(const ir::Graph& graph, llvm::ArrayRef<ir::Command> commands);

/// `costs` as resolved for `mode`.
LaunchOverheads findLaunchOverheads(const ir::Graph& graph, ir::GraphMode mode,
                                    const ir::NodeCosts& costs,
                                    llvm::ArrayRef<ir::Command> commands);

struct TimingInput {
  llvm::ArrayRef<ir::Stream> streams;  // by command
  llvm::ArrayRef<int64_t> durations;   // of each alone
  const Dependencies& dependencies;
  /// Commands before which all streams meet, ascending; 0: a step begins when all commands of the
  /// step before are over.
  llvm::ArrayRef<size_t> meetings;
  llvm::ArrayRef<RateShare> shares;
  LaunchOverheads launchOverheads;
};

/// Streams meet where a CUDA graph begins or ends: at the step's begin, and with kNoUpdate before
/// the first command that updates or takes a step scalar.
std::vector<size_t> findMeetings(const ir::Graph& graph, ir::GraphMode mode,
                                 llvm::ArrayRef<ir::Command> commands);

/// The steady state. Steps that never repeat exactly are averaged over the last ones simulated.
Timeline simulateTiming(const TimingInput& input);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_TIMING_H_
