// SPDX-License-Identifier: Apache-2.0
//
// First lowering pass: a schedule from the timetable with every launch in its order, originals and
// recomputes, and the boundary. Residencies keep the timetable's numbers through all
// levels; here they have no offsets yet, and those that a copy will fill are read all the same.
// Gives level kOrdered.
#ifndef STOWAGE_PASSES_LOWERING_INSERT_RECOMPUTE_H_
#define STOWAGE_PASSES_LOWERING_INSERT_RECOMPUTE_H_

#include <memory>
#include <string>

#include "passes/manage/pass.h"

namespace stowage::passes {

struct InsertRecomputeOptions {
  ir::GraphMode graphMode = ir::GraphMode::kNone;  // how much of a step is one CUDA graph
};

class InsertRecompute : public Pass {
 public:
  explicit InsertRecompute(InsertRecomputeOptions options = {}) : options_(options) {}
  static ir::Expected<std::unique_ptr<Pass>> parse(llvm::StringRef options);

  std::string name() const override { return "insert-recompute"; }
  std::string options() const override;
  std::optional<ir::Level> gives() const override { return ir::Level::kOrdered; }
  ir::Expected<PassReport> run(PassState& state) const override;

 private:
  InsertRecomputeOptions options_;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_LOWERING_INSERT_RECOMPUTE_H_
