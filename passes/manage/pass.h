// SPDX-License-Identifier: Apache-2.0
//
// The contract of a pass. Two groups: normalising passes make a new graph from a graph, before
// costing; lowering passes raise a schedule from one level to the next. A pass is a plain object
// with an options struct that round-trips through pipeline text
// ("split-list-ops{bucket-bytes=64MiB}"); what it did comes back as a report, never through a
// parameter. A pass that fails leaves the state as it was.
#ifndef STOWAGE_PASSES_MANAGE_PASS_H_
#define STOWAGE_PASSES_MANAGE_PASS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "planner/problem/timetable.h"

namespace stowage::passes {

struct PassReport {
  bool changed = false;
  std::vector<std::pair<std::string, int64_t>>
      counters;                      // "buckets", 12: in a fixed order per pass
  std::vector<std::string> remarks;  // for people: why something was left as it was
};

/// What passes work on. Lowering passes also read the timetable they write out.
struct PassState {
  ir::Graph graph;
  std::optional<ir::Schedule> schedule;
  ir::Target target;
  std::optional<planner::Timetable> timetable;
  planner::Decisions decisions;  // asked for; only `evaluate` (a pass for text) reads them
};

class Pass {
 public:
  virtual ~Pass() = default;
  /// "insert-copies": a verb phrase, as in pipeline text.
  virtual std::string name() const = 0;
  /// Options as pipeline text without the braces; "" when all have their defaults.
  virtual std::string options() const { return ""; }
  /// Level a lowering pass needs and gives; none for normalising passes.
  virtual std::optional<ir::Level> needs() const { return std::nullopt; }
  virtual std::optional<ir::Level> gives() const { return std::nullopt; }
  virtual ir::Expected<PassReport> run(PassState& state) const = 0;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_MANAGE_PASS_H_
