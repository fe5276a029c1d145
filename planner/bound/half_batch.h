// SPDX-License-Identifier: Apache-2.0
//
// What the step would need at least with half the batch, as two micro-batches have it. The batch is
// the first size that all inputs share. What follows from inputs and has a multiple of it among its
// sizes is taken to shrink with it, and so are temporaries beside that.
#ifndef STOWAGE_PLANNER_BOUND_HALF_BATCH_H_
#define STOWAGE_PLANNER_BOUND_HALF_BATCH_H_

#include <optional>

#include "planner/problem/problem.h"

namespace stowage::planner {

struct HalfBatch {
  int64_t batch = 0;  // of the whole
  Bytes least;        // the largest working set of one node with half of it
};

/// Nothing where inputs share no first size that can be halved.
std::optional<HalfBatch> findHalfBatch(const Problem& problem);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_BOUND_HALF_BATCH_H_
