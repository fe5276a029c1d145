// SPDX-License-Identifier: Apache-2.0
//
// Puts the timetable's copies (offload, prefetch, spill to disk, fill from it) at their places in
// the enqueue order. From here on every residency that is read has been written before. Needs level
// kOrdered, gives kCopied.
#ifndef STOWAGE_PASSES_LOWERING_INSERT_COPIES_H_
#define STOWAGE_PASSES_LOWERING_INSERT_COPIES_H_

#include "passes/manage/pass.h"

namespace stowage::passes {

class InsertCopies : public Pass {
 public:
  std::string name() const override { return "insert-copies"; }
  std::optional<ir::Level> needs() const override { return ir::Level::kOrdered; }
  std::optional<ir::Level> gives() const override { return ir::Level::kCopied; }
  ir::Expected<PassReport> run(PassState& state) const override;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_LOWERING_INSERT_COPIES_H_
