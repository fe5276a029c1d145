// SPDX-License-Identifier: Apache-2.0
//
// For text only: makes the timetable that the lowering passes write out, from the decisions of a
// schedule block (`decide` rows; none means keep all) and costs that can be added up by hand. A
// node lasts 1 us plus 1 ns for each byte of its distinct operands and results; a copy 1 ns per
// byte, no latency; no node needs temporaries. Everything else is planner::evaluate's doing, the
// same as for a real plan. Without a prefetch limit, prefetches may fill any number of bytes.
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
