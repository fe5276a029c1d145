// SPDX-License-Identifier: Apache-2.0
//
// Are two recorded steps the same step? Same ops in the same order on the same tensors: storages
// that live across steps must be the same ones, those made inside a step must play the same parts.
// Host numbers may differ, and where they do is the answer.
// Errors: kUnsupported, naming the first op that differs and how.
// Not here: what a differing number means (graph_assembly.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_TRACE_STEP_DIFF_H_
#define STOWAGE_RUNTIME_CAPTURE_TRACE_STEP_DIFF_H_

#include <compare>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/base/error.h"
#include "runtime/capture/trace/trace.h"

namespace stowage::runtime {

/// Where a host number stands in a step.
struct ScalarSite {
  uint32_t node = 0;
  uint32_t argument = 0;
  int32_t element = -1;  // in a list of numbers
  friend auto operator<=>(const ScalarSite&, const ScalarSite&) = default;
};

struct HostNumber {
  bool isInteger = false;
  double value = 0;
  int64_t integer = 0;
  /// Bit for bit.
  friend bool operator==(const HostNumber& a, const HostNumber& b);
};

/// The host numbers that may differ from step to step, in order: Scalar and float arguments, and
/// numbers that take part as tensors. Integers that are sizes, dimensions or positions are not
/// among them.
std::vector<ScalarSite> scalarSites(const StepTrace& step);
HostNumber numberAt(const StepTrace& step, const ScalarSite& site);

/// A range of nodes of one step, under the name that messages use.
struct StepPart {
  const StepTrace& step;
  std::string name;
  size_t begin = 0;
  size_t end = 0;
  llvm::ArrayRef<ir::ValueId> reports = {};  // what `loss` returned, to be compared too
};
StepPart wholeStep(const StepTrace& step, std::string name);

/// Storages of one step and those that play the same parts in another.
using StoragePairs = std::unordered_map<StorageKey, StorageKey>;

/// What a comparison shows beside its answer.
struct PartMatch {
  StoragePairs pairs;      // from storages of the second step to those of the first
  size_t differsFrom = 0;  // node of the second step, counted from its part's begin
};

/// Success when both parts are the same but for host numbers. `known`: storages of `b` that stand
/// for storages of `a`. `match` may be null.
ir::Error matchSteps(const StepPart& a, const StepPart& b, const StorageTable& storages,
                     const StoragePairs& known = {}, PartMatch* match = nullptr);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_TRACE_STEP_DIFF_H_
