// SPDX-License-Identifier: Apache-2.0
//
// Writes the addresses that the planner chose: offsets of residencies, regions for temporaries,
// which results land on a dying operand, reserved regions, and the arenas. The device arena is the
// budget exactly; without a budget it is what the timetable needs. Chooses nothing itself. Needs
// level kCopied, gives kPlaced.
#ifndef STOWAGE_PASSES_LOWERING_ASSIGN_OFFSETS_H_
#define STOWAGE_PASSES_LOWERING_ASSIGN_OFFSETS_H_

#include <memory>
#include <string>

#include "ir/base/units.h"
#include "passes/manage/pass.h"

namespace stowage::passes {

struct AssignOffsetsOptions {
  Bytes budget;  // 0: what the timetable needs
};

class AssignOffsets : public Pass {
 public:
  explicit AssignOffsets(AssignOffsetsOptions options = {}) : options_(options) {}
  static ir::Expected<std::unique_ptr<Pass>> parse(llvm::StringRef options);

  std::string name() const override { return "assign-offsets"; }
  std::string options() const override;
  std::optional<ir::Level> needs() const override { return ir::Level::kCopied; }
  std::optional<ir::Level> gives() const override { return ir::Level::kPlaced; }
  /// Errors: kInfeasible when the timetable needs more than the budget.
  ir::Expected<PassReport> run(PassState& state) const override;

 private:
  AssignOffsetsOptions options_;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_LOWERING_ASSIGN_OFFSETS_H_
