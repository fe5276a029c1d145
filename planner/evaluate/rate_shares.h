// SPDX-License-Identifier: Apache-2.0
//
// Streams that slow each other down: a command keeps its whole rate alone, and a share of it while
// another stream is busy. Durations follow from when commands run, and when commands run follows
// from durations: timing.cpp computes both in turns.
#ifndef STOWAGE_PLANNER_EVALUATE_RATE_SHARES_H_
#define STOWAGE_PLANNER_EVALUATE_RATE_SHARES_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <vector>

#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "planner/evaluate/timeline.h"

namespace stowage::planner {

/// Commands of `stream` keep `permille` of their rate while `beside` is busy.
struct RateShare {
  ir::Stream stream;
  ir::Stream beside;
  int permille = 1000;
};

/// Those of a machine between disk reads and writes, of prefetches beside updates on the host, and
/// of compute beside collectives. Copies both ways between device and host have none: rates
/// measured inside steps have it in them.
std::vector<RateShare> findRateShares(const ir::LinkModel& links);

/// `alone`: durations of commands that have the machine to themselves. The result has them as long
/// as `timeline` makes them, whose steps follow each other without end.
std::vector<int64_t> stretchDurations(llvm::ArrayRef<ir::Stream> streams,
                                      llvm::ArrayRef<int64_t> alone,
                                      llvm::ArrayRef<RateShare> shares, const Timeline& timeline);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_RATE_SHARES_H_
