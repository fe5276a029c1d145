// SPDX-License-Identifier: Apache-2.0
//
// Drops redundant waits: those on commands that stream order, or another wait of the command,
// already orders before it, directly or through a chain, within the step and across the step
// boundary. The result is the smallest set of waits with the same order: each one left is the only
// reason for its order. Needs and gives level kSynced.
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
