// SPDX-License-Identifier: Apache-2.0
//
// From an action per gap to what one step does, in order and without times or addresses: the nodes
// and their recomputes, the live ranges of each storage, and the copies that these need.
//   - A recompute is placed right before the node that needs its result, inputs first. An
//     input that is on the device is used there; one that was offloaded is prefetched
//     early; one that is dropped is recomputed itself. A recompute thus ends the gap of its inputs.
//   - A LiveRange is a stretch in which a storage occupies one address. A storage that is kept over
//     the step boundary has one live range across it: `end` is at least the number of launches.
//   - A node on the host is no launch: it needs copies of what the device made for it, and the
//   device
//     prefetches what it wrote.
//   - Launch 0 stands for the step boundary: it takes no time and runs nothing.
// A prefetch and its source may lie in different periods; all positions are given in the frame of
// the object they belong to, so they may be negative or beyond the number of launches.
#ifndef STOWAGE_PLANNER_EVALUATE_EXPAND_H_
#define STOWAGE_PLANNER_EVALUATE_EXPAND_H_

#include <llvm/ADT/SmallVector.h>

#include <cstdint>
#include <vector>

#include "ir/base/error.h"
#include "planner/problem/gaps.h"

namespace stowage::planner {

/// One launch on the compute stream; a collective's, on its own.
struct Launch {
  ir::NodeId node;                   // invalid: the step boundary
  int32_t recompute = 0;             // 0: the original; k: its k-th recompute
  llvm::SmallVector<int32_t, 4> in;  // live ranges, in order of the node's accesses
  llvm::SmallVector<int32_t, 2> out;
  int32_t takes = -1;  // live range among `in` whose bytes result 0 reuses
  int32_t rngSlot = -1;
};

struct LiveRange {
  ir::StorageId storage;
  int32_t begin = -1;  // launch that touches it first: makes it, or is the deadline of its prefetch
  int32_t end = -1;    // launch that touches it last
  int32_t lastWrite = -1;  // -1: nobody writes it here
  int32_t version = -1;    // what it holds in the end
  int32_t prefetch = -1;   // index of the prefetch that fills it
  int32_t offload = -1;    // index of the copy to the host that must be over before it may go
  bool always = false;     // never leaves the device
  bool isHost = false;     // of a storage that lives on the host for good
  int32_t takenBy = -1;    // live range that reuses its bytes in place
};

/// A copy to the host, possible once launch `after` is over.
struct Offload {
  int32_t liveRange = -1;
  int32_t after = -1;
  bool isOutput = false;  // delivered with this step, or for a node on the host: enqueued before
                          // the step boundary
};

/// A node on the host, possible once launch `after`, the offloads, and the earlier nodes that it
/// shares state with are over. Enqueued before the step boundary, so the host has what it wrote
/// when a step begins.
struct HostRun {
  ir::NodeId node;
  int32_t after = 0;
  llvm::SmallVector<int32_t, 4> offloads;  // that bring it what the device made in this step
  llvm::SmallVector<int32_t, 2> before;    // host runs
};

/// A copy to the device that must be over when launch `deadline` starts.
struct Prefetch {
  int32_t liveRange = -1;
  int32_t deadline = -1;
  int32_t release = -1;     // not before this launch is over: the bytes are still on the device
  int32_t source = -1;      // the offload that gave the host these bytes; -1: the host has them
  int32_t hostRun = -1;     // the node on the host that gave the host these bytes
  int32_t sourceShift = 0;  // periods between source or node and prefetch: 0 or -1
  bool ofThisStep = false;  // the host has the bytes only from the step boundary on: an input's
};

/// Does the host, or the disk for what goes there, hold a storage's bytes when a step begins?
struct HostSource {
  bool needed = false;   // the storage has a place on the host
  bool always = false;   // never written by the device: filled from outside or by nodes on the host
  int32_t offload = -1;  // else: the copy that brings its last version there; -1: none does
};

struct Expansion {
  std::vector<Launch> launches;  // launches[0] is the step boundary
  std::vector<LiveRange> liveRanges;
  std::vector<Offload> offloads;
  std::vector<Prefetch> prefetches;
  std::vector<HostRun> hostRuns;  // in order of their nodes
  /// By storage: its live ranges in order, without those of by-products of recomputes. A live range
  /// that crosses the step boundary is both first and last.
  std::vector<llvm::SmallVector<int32_t, 2>> history;
  /// By storage: what gives the host the bytes that are valid at the step boundary.
  std::vector<HostSource> hostAtBoundary;
  /// By storage: some gap sends it to disk. Then all its copies go through the host to or from
  /// disk.
  std::vector<bool> onDisk;
  /// By gap: its bytes were brought back (a tail's only are if a recompute asks for them).
  std::vector<bool> ended;
  /// By gap: the prefetch that ends it; -1: none does.
  std::vector<int32_t> endingPrefetch;

  int32_t launchCount() const { return static_cast<int32_t>(launches.size()); }
};

/// What is launched next, after the recomputes that it needs: a node; or, where `made` is valid,
/// only the recomputes that make the current version of this storage, which a later launch reads.
struct OrderedLaunch {
  ir::NodeId node;
  ir::StorageId made;
};
using LaunchOrder = std::vector<OrderedLaunch>;

/// `actions` by gap (GapTable::gaps). `order`: each node once, and each storage's accesses in the
/// graph's order; empty: nodes in the graph's order. Errors: kInvalidArgument naming the storage
/// when a recompute cannot have its inputs or an action is not possible in its gap.
ir::Expected<Expansion> expand(const GapTable& table, llvm::ArrayRef<ir::GapAction> actions,
                               const LaunchOrder& order = {});

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_EVALUATE_EXPAND_H_
