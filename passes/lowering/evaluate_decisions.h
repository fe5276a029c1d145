// SPDX-License-Identifier: Apache-2.0
//
// A pass for stowage-opt and text tests. It makes a timetable from the `decide` rows of a schedule
// block (no rows: keep everything). Costs are simple enough to add up by hand: a node takes 1 us
// plus 1 ns per byte of its distinct operands and results; a copy takes 1 ns per byte; nothing has
// latency or temporaries. All else is planner::evaluate, as for a real plan. Without a prefetch
// limit, prefetches may fill any number of bytes.
#ifndef STOWAGE_PASSES_LOWERING_EVALUATE_DECISIONS_H_
#define STOWAGE_PASSES_LOWERING_EVALUATE_DECISIONS_H_

#include <memory>
#include <string>

#include "ir/costs/cost_table.h"
#include "passes/manage/pass.h"

namespace stowage::passes {

struct EvaluateDecisionsOptions {
  Bytes prefetchLimit;  // 0: none
};

class EvaluateDecisions : public Pass {
 public:
  explicit EvaluateDecisions(EvaluateDecisionsOptions options = {}) : options_(options) {}
  static ir::Expected<std::unique_ptr<Pass>> parse(llvm::StringRef options);

  std::string name() const override { return "evaluate"; }
  std::string options() const override;
  ir::Expected<PassReport> run(PassState& state) const override;

 private:
  EvaluateDecisionsOptions options_;
};

/// The costs described above.
ir::CostTable makeCountedCosts(const ir::Graph& graph);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_LOWERING_EVALUATE_DECISIONS_H_
