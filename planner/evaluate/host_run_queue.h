// SPDX-License-Identifier: Apache-2.0
//
// Which node on the host may run when, in the simulation of copies: in each period once its launch
// is over, and the offloads and other nodes on the host that it waits for. Of those that may, the
// one goes first whose bytes are prefetched first. Periods are counted in frames.
#ifndef STOWAGE_PLANNER_EVALUATE_HOST_RUN_QUEUE_H_
#define STOWAGE_PLANNER_EVALUATE_HOST_RUN_QUEUE_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>

#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

#include "planner/evaluate/by_launch.h"
#include "planner/evaluate/expand.h"

namespace stowage::planner {

class HostRunQueue {
 public:
  explicit HostRunQueue(const Expansion& expansion);

  struct Entry {
    int32_t run = -1;
    int64_t frame = 0;
  };
  /// The next one, no longer in the queue.
  std::optional<Entry> pop();

  void endLaunch(int64_t launch, int64_t frame);
  /// `frame`: the offload's own, that of its launch less the periods in Offload::after.
  void endOffload(int32_t offload, int64_t frame);
  void endRun(const Entry& entry);
  /// The latest frame whose node is over; -1: that of the step before the first.
  int64_t done(int32_t run) const { return done_[static_cast<size_t>(run)]; }
  llvm::ArrayRef<int32_t> prefetchesOf(int32_t run) const { return prefetches_.at(run); }

 private:
  void queue(int32_t run);

  const Expansion& x_;
  ByLaunch after_;
  ByLaunch prefetches_;                                   // by host run
  std::vector<llvm::SmallVector<int32_t, 1>> runsOf_;     // by offload: the runs that wait for it
  std::vector<llvm::SmallVector<int32_t, 1>> runsAfter_;  // by host run, likewise
  std::vector<int64_t> offloaded_;                        // by offload: latest frame that is over
  std::vector<int64_t> released_, queued_, done_;         // by host run: latest frame
  std::vector<int64_t> deadlines_;                        // by host run: of its first prefetch
  using Key = std::tuple<int64_t, int32_t, int64_t>;      // (deadline, run, frame)
  std::priority_queue<Key, std::vector<Key>, std::greater<>> ready_;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_HOST_RUN_QUEUE_H_
