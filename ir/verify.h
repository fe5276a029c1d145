// SPDX-License-Identifier: Apache-2.0
//
// Proves a schedule against its graph by the rules V1 to V31 (table: ir/README.md; V1, V2, V3 also
// have a part at the file reader and at run). Sees only graph.h, schedule.h, op_table.h, target.h:
// no planner, no liveness. Its own happens-before (one vector clock per stream), its own account of
// versions and bytes; the step is unrolled twice, which with V23 (the boundary repeats) is an
// induction over all steps. Reports every violation, not only the first. Cost: O(commands * streams
// + overlapping pairs).
#ifndef STOWAGE_IR_VERIFY_H_
#define STOWAGE_IR_VERIFY_H_

#include <string>
#include <vector>

#include "ir/cost_table.h"
#include "ir/error.h"
#include "ir/graph.h"
#include "ir/schedule.h"
#include "ir/target.h"

namespace stowage::ir {

struct Violation {
  int rule = 0;         // 7 for V7
  std::string message;  // names command, storage, what was found and what was expected
  CommandId command;    // invalid when the rule is not about one
};

struct VerifyInput {
  const Graph& graph;
  const Schedule& schedule;
  const Target& target;
  const NodeCosts* costs =
      nullptr;   // for V17 (need of temporaries) and V30; null: those parts are skipped
  Bytes budget;  // V20: the device arena is exactly this; 0: not checked
};

/// All violations, ordered by rule, then command. Empty: the schedule is proven.
std::vector<Violation> verify(const VerifyInput& input);
/// The same as an error: kViolation with a note "V10: ..." each.
Error verifyOrError(const VerifyInput& input);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_VERIFY_H_
