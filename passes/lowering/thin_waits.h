// SPDX-License-Identifier: Apache-2.0
//
// Drops waits that say nothing new: those on commands that the stream's order, or another wait of
// the command, puts before it already, directly or through any chain, within the step and across
// the step boundary. What is left is the smallest set with the same order: each command is then
// waited for only where that is the only reason. Needs and gives level kSynced.
#ifndef STOWAGE_PASSES_LOWERING_THIN_WAITS_H_
#define STOWAGE_PASSES_LOWERING_THIN_WAITS_H_

#include "passes/manage/pass.h"

namespace stowage::passes {

class ThinWaits : public Pass {
 public:
  std::string name() const override { return "thin-waits"; }
  std::optional<ir::Level> needs() const override { return ir::Level::kSynced; }
  std::optional<ir::Level> gives() const override { return ir::Level::kSynced; }
  ir::Expected<PassReport> run(PassState& state) const override;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_LOWERING_THIN_WAITS_H_
