// SPDX-License-Identifier: Apache-2.0
//
// Facts about a problem that every evaluation needs and no decision changes: the gaps of all
// storages, what may be done in each, which nodes are recomputable, sizes as the arena sees them.
// Made once per problem; immutable. A gap follows a touch, so gaps are numbered like touches:
// gap(storage, k) is the stretch between touch k and the next one. The last gap of a persistent
// storage wraps around the boundary of the step; the last gap of any other storage is its tail.
// A gap is live if the bytes are needed at its end. After a tail's begin, and before a write of the
// whole storage, the bytes are dead: only a recomputed node may still ask for them, and whether
// they are then kept for it or recomputed themselves is a rule (recomputesDeadInput), not a
// decision.
#ifndef STOWAGE_PLANNER_PROBLEM_GAPS_H_
#define STOWAGE_PLANNER_PROBLEM_GAPS_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "planner/problem/problem.h"

namespace stowage::planner {

struct Gap {
  ir::StorageId storage;
  int64_t begin = 0;  // node position of the touch before
  int64_t end = 0;    // of the touch after; beyond the number of nodes when it wraps; the number of
                      // nodes for a tail
  bool live = false;  // the bytes are needed at its end: neither a tail nor before a whole write
  bool mayHost = false;
  bool mayDisk = false;
  bool mayRecompute = false;
  bool mustHost = false;  // a node on the host gives it new bytes there meanwhile
};

class GapTable {
 public:
  explicit GapTable(const Problem& problem);

  const Problem& problem() const { return *problem_; }
  llvm::ArrayRef<Gap> gaps() const { return gaps_; }
  size_t gapIndex(ir::StorageId storage, size_t touch) const {
    return firstGap_[storage.index()] + touch;
  }
  size_t gapCount(ir::StorageId storage) const {
    return firstGap_[storage.index() + 1] - firstGap_[storage.index()];
  }
  /// Index of the touch with which the chain of writers begins that makes the bytes as they are
  /// after `touch`: the last whole write. -1 if some writer is not recomputable.
  int32_t chainBegin(ir::StorageId storage, size_t touch) const {
    return chainBegin_[gapIndex(storage, touch)];
  }
  /// What a recompute of `node` touches: what the node does, or, where its op has a replay form,
  /// that without what the node changes in place.
  llvm::ArrayRef<ir::Access> recomputeAccesses(size_t node) const;
  /// Sum of the chain's node times, in nanoseconds.
  int64_t chainTime(ir::StorageId storage, size_t touch) const;
  /// Bytes of a residency in the device or host arena.
  int64_t bytes(ir::StorageId storage) const { return bytes_[storage.index()]; }
  int64_t nodeTime(size_t node) const { return problem_->costs.time(ir::NodeId(node)).value(); }
  /// Of that the work that compute does, without the launch wait: none for a collective.
  int64_t nodeWork(size_t node) const {
    return collectiveTime(node) > 0 ? 0 : problem_->costs.nodes[node].work.value();
  }
  /// On the stream of collectives; 0 for any other node.
  int64_t collectiveTime(size_t node) const {
    const auto& times = problem_->costs.collectiveWork;
    return times.empty() ? 0 : times[node].value();
  }
  int64_t temporary(size_t node) const { return temporary_[node]; }
  int64_t reservedBytes() const { return reservedBytes_; }
  size_t nodeCount() const { return temporary_.size(); }
  /// Storages on whose bytes result 0 of `node` may land (in_place_operands.h); some invalid.
  const std::array<ir::StorageId, 2>& inPlaceOperands(size_t node) const {
    return inPlaceOperands_[node];
  }
  bool isRandom(size_t node) const { return isRandom_[node]; }
  /// Never on the device: a host tensor, or a persistent storage that no node of the device touches
  /// and that may be offloaded or that a node on the host needs there.
  bool isHostOnly(ir::StorageId storage) const { return hostOnly_[storage.index()]; }
  /// Are the dead bytes of `input` (dead since `touch`) recomputed for a recompute that makes
  /// `result`? Else they stay until the recompute: what is small beside the result, or is not
  /// recomputable.
  bool recomputesDeadInput(ir::StorageId input, size_t touch, ir::StorageId result) const;
  /// Does a node on the host write it? Then the host has its newest bytes.
  bool isWrittenOnHost(ir::StorageId storage) const {
    return !hostWrites_[storage.index()].empty();
  }
  /// Written in each step on the device, so the host's copy grows stale.
  bool isWritten(ir::StorageId storage) const;

 private:
  void deriveReplayForm(size_t node);
  bool isRecomputable(size_t node) const;
  void findHostWrites();
  bool isWrittenOnHost(const Gap& gap) const;
  bool mayDisk(ir::StorageId storage) const;
  void addGaps(ir::StorageId storage);
  int32_t findChain(ir::StorageId storage, size_t touch) const;

  const Problem* problem_;
  std::vector<Gap> gaps_;
  std::vector<size_t> firstGap_;
  std::vector<int32_t> chainBegin_;
  std::vector<int64_t> bytes_;
  std::vector<int64_t> temporary_;
  std::vector<std::array<ir::StorageId, 2>> inPlaceOperands_;
  std::map<size_t, llvm::SmallVector<ir::Access, 4>> replayed_;  // by node with a replay form
  std::vector<bool> recomputable_;
  std::vector<bool> isRandom_;
  std::vector<bool> hostOnly_;
  std::vector<bool> usedOnHost_;                           // by storage: nodes on the host touch it
  std::vector<llvm::SmallVector<int64_t, 1>> hostWrites_;  // by storage: nodes on the host
  int64_t reservedBytes_ = 0;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_PROBLEM_GAPS_H_
