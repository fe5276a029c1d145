// SPDX-License-Identifier: Apache-2.0
//
// Compares nodes of two recorded steps, pairing the storages made inside them as it goes.
// Invariants: a pair, once made, stays; nodes that differ leave no pairs behind.
// Not here: which nodes to compare (step_diff.h, step_alignment.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_TRACE_STEP_MATCHER_H_
#define STOWAGE_RUNTIME_CAPTURE_TRACE_STEP_MATCHER_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/capture/trace/step_diff.h"
#include "runtime/capture/trace/trace.h"

namespace stowage::runtime {

class StepMatcher {
 public:
  /// `known`: storages of `b` that stand for storages of `a`; outlives the matcher.
  StepMatcher(const StepPart& a, const StepPart& b, const StorageTable& storages,
              const StoragePairs& known)
      : a_(a.step),
        b_(b.step),
        nameOfA_(a.name),
        nameOfB_(b.name),
        storages_(storages),
        known_(known) {}

  /// `a` is the first step of a training: where a fused update makes its momentum there, it is the
  /// update of later steps, given a momentum of -0.0 and no dampening.
  void acceptFirstMomentum() { acceptsFirstMomentum_ = true; }

  /// Empty when node `i` of the first step does what node `k` of the second does; else how they
  /// differ, with the names of both. Host numbers that may differ are not compared.
  std::string differenceBetween(size_t i, size_t k);
  /// Does `b` play the part of `a`, as far as nodes were compared?
  bool plays(ir::ValueId a, ir::ValueId b) { return compare(a, b).empty(); }
  /// From storages of the second step to those of the first.
  const StoragePairs& pairs() const { return partnersBack_; }

 private:
  std::string compare(const TracedNode& a, const TracedNode& b);
  std::string compare(const ir::Argument& a, const ir::Argument& b, bool numbersMayDiffer);
  std::string compare(const ir::ValueList& a, const ir::ValueList& b);
  std::string compare(ir::ValueId a, ir::ValueId b);
  std::string compareStorages(StorageKey a, StorageKey b);
  bool contentsDiffer(StorageKey a, StorageKey b) const;
  bool isOlderThan(const StepTrace& step, StorageKey key) const;

  const StepTrace& a_;
  const StepTrace& b_;
  const std::string nameOfA_, nameOfB_;
  const StorageTable& storages_;
  const StoragePairs& known_;
  bool acceptsFirstMomentum_ = false;
  StoragePairs partners_, partnersBack_;
  std::vector<std::pair<StorageKey, StorageKey>> added_;  // by the comparison under way
};

/// May this argument be another number in another step? Scalars and floats, and numbers that take
/// part as tensors; never sizes, dimensions or positions.
bool numberMayDiffer(const TracedNode& node, size_t argument);

/// A fused update that takes its gradient as the first momentum.
bool makesFirstMomentum(const TracedNode& node);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_TRACE_STEP_MATCHER_H_
