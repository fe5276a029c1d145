// SPDX-License-Identifier: Apache-2.0
//
// What each distinct op signature costs: its work, its launch overhead, the temporary bytes inside
// the call, and the order of its allocations. Filled by measurement (runtime/calibrate), by a
// target's roofline (planner/targets), or by hand in tests. Keyed by signature, not by node, so
// that a table serves every graph with the same shapes.
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
  Nanoseconds work;    // of its kernels on the device
  Nanoseconds launch;  // launch overhead: of the CPU thread (ir/costs/launch_waits.h)
  Bytes temporary;  // peak of a first-fit region that serves every allocation that is not a result
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
  Nanoseconds scalars;           // a second CPU thread computes a step's scalars in this time
  std::map<std::string, OpCost> bySignature;  // key: nodeSignature
};

/// Identity of a call for costing: op, dtype/sizes/strides of tensor arguments and results,
/// aliasing between arguments, and the other arguments (step scalars without their value). Stable
/// text.
std::string nodeSignature(const Graph& graph, NodeId node);

/// Costs of a graph's nodes, by node index.
struct NodeCosts {
  std::vector<OpCost> nodes;
  /// Launch waits: how long compute waits for the launch thread before a node, in steps without
  /// copies (ir/costs/launch_waits.h). Empty: none.
  std::vector<Nanoseconds> waits;
  /// What nodes on the host take there; they take no time and no temporaries of the device. By
  /// node; empty: there are none.
  std::vector<Nanoseconds> hostWork;
  /// What collectives take on their stream; `nodes` has what they take from compute beside them. By
  /// node; empty: there are none.
  std::vector<Nanoseconds> collectiveWork;
  Nanoseconds scalars;  // CostTable::scalars
  LinkModel links;
  CostSource source = CostSource::kGiven;

  bool isCollective(NodeId node) const {
    return !collectiveWork.empty() && collectiveWork[node.index()] > Nanoseconds(0);
  }
  /// Launch wait and work of a node: the estimate that a search uses. A schedule is timed by work
  /// and launch overhead instead (planner/evaluate/timing.h).
  Nanoseconds time(NodeId node) const {
    const Nanoseconds work = nodes[node.index()].work;
    return waits.empty() ? work : waits[node.index()] + work;
  }
  /// Sum of time() over all nodes but collectives: a step that waits for no copy and no rank.
  Nanoseconds totalTime() const;
};

/// Under a launch mode. Errors: kInvalidArgument naming how many nodes have no row, and the first
/// of them.
Expected<NodeCosts> resolveCosts(const Graph& graph, const CostTable& table,
                                 GraphMode mode = GraphMode::kNone);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_COSTS_COST_TABLE_H_
