// SPDX-License-Identifier: Apache-2.0
//
// The planning problem: one graph, what its nodes cost, the machine, and what may be done to which
// storage. All storages compete for the same bytes and the same links; there is no rule about kinds
// of tensors here.
#ifndef STOWAGE_PLANNER_PROBLEM_PROBLEM_H_
#define STOWAGE_PLANNER_PROBLEM_PROBLEM_H_

#include <llvm/ADT/StringRef.h>

#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/graph/liveness.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"

namespace stowage::planner {

/// What the planner may do. Each has a switch, so that users see what it is worth.
struct Allowed {
  bool offload = true;  // to the host
  bool disk = false;
  bool recompute = true;
  bool inPlaceReuse = true;
  /// Whole segments between about so many cut points are recomputed in backward (`recompute` must
  /// be on), and the search decides nothing else; 0: each gap by itself.
  int32_t segments = 0;
  friend bool operator==(const Allowed&, const Allowed&) = default;
};

/// "PATTERN=ACTION": storages whose name matches the glob pattern (`*`, `?`) are kept, held on the
/// host, recomputed.
struct Pin {
  std::string pattern;
  ir::GapAction action = ir::GapAction::kKeep;
  friend bool operator==(const Pin&, const Pin&) = default;
};

/// "layers.0.*=keep"
std::string describePin(const Pin& pin);

/// `*` stands for any characters, `?` for one; all others for themselves.
bool matchesGlob(llvm::StringRef pattern, llvm::StringRef name);

struct Limits {
  Bytes host{INT64_MAX};
  Bytes disk;  // 0: no disk
  friend bool operator==(const Limits&, const Limits&) = default;
};

struct Problem {
  const ir::Graph& graph;
  const ir::Target& target;
  ir::NodeCosts costs;
  Allowed allowed;
  Limits limits;
  std::vector<Pin> pins;
  std::vector<ir::DecisionRow> pinnedRows;  // from an edited plan (`plan --from`)
  ir::GraphMode graphMode = ir::GraphMode::kNone;
  std::vector<ir::StorageLife> lives;  // by storage; from computeLives
};

/// Checks that costs fit the graph, that every pin matches a storage, that the links have
/// bandwidth. Errors: kInvalidArgument naming the pin or node. The graph and target must outlive
/// the problem.
ir::Expected<Problem> makeProblem(const ir::Graph& graph, const ir::Target& target,
                                  const ir::CostTable& costs, Allowed allowed = {},
                                  Limits limits = {}, std::vector<Pin> pins = {},
                                  ir::GraphMode graphMode = ir::GraphMode::kNone);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_PROBLEM_PROBLEM_H_
