// SPDX-License-Identifier: Apache-2.0
//
// What goes to disk goes through the host: an offload leaves its bytes in one ring of host memory,
// from which they are written to disk; a prefetch takes its bytes from another ring, into which
// they were read. Both rings are filled in order of the copies that use them, each period from the
// begin.
//   - A write to disk is enqueued right behind its offload. An offload into bytes that are still
//     being written waits for that write: a slow disk holds up the offloads.
//   - A read is enqueued as early as the order allows: when the ring's bytes are free, the bytes
//   are
//     on disk, and the gap has begun. So the disk reads ahead as far as the ring goes.
//   - The rings get what the host limit leaves, in proportion to what is written and read in a
//   step.
//     They are never smaller than the largest storage that passes them, nor larger than is of use.
// Waits follow from offsets and order, as everywhere (dependencies.h).
#ifndef STOWAGE_PLANNER_EVALUATE_DISK_COPIES_H_
#define STOWAGE_PLANNER_EVALUATE_DISK_COPIES_H_

#include <cstdint>
#include <vector>

#include "planner/evaluate/enqueue_order.h"
#include "planner/evaluate/expand.h"
#include "planner/problem/gaps.h"

namespace stowage::planner {

struct DiskCopies {
  std::vector<int64_t> writes;   // by offload: where on the host its bytes wait; -1: not for disk
  std::vector<int64_t> reads;    // by prefetch, likewise
  std::vector<int64_t> extents;  // by storage: where on disk; -1: never there
  /// By prefetch: its read is enqueued in the step before, so the bytes are on the host between.
  std::vector<bool> readsEarly;
  int64_t hostPeak = 0;  // with the rings
  int64_t diskPeak = 0;
};

/// Adds the disk's commands to `commands`. `residentBytes`: of the host, taken by others.
DiskCopies addDiskCopies(const GapTable& table, const Expansion& expansion, int64_t residentBytes,
                         std::vector<EnqueuedCommand>& commands);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_DISK_COPIES_H_
