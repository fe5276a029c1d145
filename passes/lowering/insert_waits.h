// SPDX-License-Identifier: Apache-2.0
//
// Makes every command wait for all that must be finished before it starts
// (planner/evaluate/dependencies.h): data it reads, bytes that it writes again, within the step and
// across the step boundary. The safe and wasteful set: thin-waits removes what other waits
// imply. Needs level kPlaced, gives kSynced.
#ifndef STOWAGE_PASSES_LOWERING_INSERT_WAITS_H_
#define STOWAGE_PASSES_LOWERING_INSERT_WAITS_H_

#include "passes/manage/pass.h"

namespace stowage::passes {

class InsertWaits : public Pass {
 public:
  std::string name() const override { return "insert-waits"; }
  std::optional<ir::Level> needs() const override { return ir::Level::kPlaced; }
  std::optional<ir::Level> gives() const override { return ir::Level::kSynced; }
  ir::Expected<PassReport> run(PassState& state) const override;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_LOWERING_INSERT_WAITS_H_
