// SPDX-License-Identifier: Apache-2.0
//
// What each distinct op signature costs: nanoseconds of its work and of handing it over, temporary
// bytes inside the call, and the order of its allocations. Filled by measurement
// (runtime/calibrate), by a target's roofline (planner/targets), or by hand in tests. Keyed by
// signature, not by node, so that a table serves every graph with the same shapes.
#ifndef STOWAGE_IR_COSTS_COST_TABLE_H_
#define STOWAGE_IR_COSTS_COST_TABLE_H_

#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"

namespace stowage::ir {

enum class CostSource : uint8_t { kMeasured, kRoofline, kGiven };
const char* costSourceName(CostSource source);  // "measured", "roofline", "given"
std::optional<CostSource> findCostSource(llvm::StringRef name);

struct OpCost {
  Nanoseconds time;   // of its work
  Nanoseconds issue;  // of the thread that hands it over (ir/costs/issue_waits.h)
  Bytes
      temporary;  // height of a first-fit region that serves every allocation that is not a result
  int allocations = -1;  // calls to the allocator, results included; -1: not measured
  /// Ordinal (0-based) of the main thread's allocation that becomes result k's storage, per freshly
  /// made result storage, in order of results. Empty: not measured.
  std::vector<int32_t> resultOrdinals;
  CostSource source = CostSource::kGiven;
};

struct CostTable {
  CostSource source = CostSource::kGiven;
  std::string device;  // what was measured, or the profile's name
  LinkModel links;
  std::optional<Bytes> outside;  // Target::outside, measured
  Nanoseconds scalars;  // of a thread beside, to work out a step's scalars (ir/costs/issue_waits.h)
  std::map<std::string, OpCost> bySignature;  // key: nodeSignature
};

/// Identity of a call for costing: op, dtype/sizes/strides of tensor arguments and results,
/// aliasing between arguments, and the other arguments (step scalars without their value). Stable
/// text.
std::string nodeSignature(const Graph& graph, NodeId node);

/// Costs of a graph's nodes, by node index.
struct NodeCosts {
  /// `time` is a node's work and what compute waits for the issuing thread before it, under a
  /// launch mode, in steps that copy and wait for nothing else (ir/costs/issue_waits.h): what a
  /// search reckons with. A schedule is timed by work and issue (planner/evaluate/timing.h).
  std::vector<OpCost> nodes;
  std::vector<Nanoseconds> waits;  // of `time` that part, by node; empty: none
  Nanoseconds scalars;             // CostTable::scalars
  LinkModel links;
  CostSource source = CostSource::kGiven;

  Nanoseconds work(NodeId node) const {
    const Nanoseconds time = nodes[node.index()].time;
    return waits.empty() ? time : time - waits[node.index()];
  }
};

/// Under a launch mode. Errors: kInvalidArgument naming how many nodes have no row, and the first
/// of them.
Expected<NodeCosts> resolveCosts(const Graph& graph, const CostTable& table,
                                 GraphMode mode = GraphMode::kNone);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_COSTS_COST_TABLE_H_
