// SPDX-License-Identifier: Apache-2.0
//
// Row blocks: runs regions of row-wise ops block of rows by block of rows, so that what lies
// between two matrix products (the f32 copies of logits around a loss, the softmax of attention)
// needs the memory of one block. Every op gets its rows at equally aligned addresses and gives them
// the same bits; a loss keeps its bits because its sum over rows runs once, over one number a row.
// Results that later nodes read are written to whole storages row by row, where possible over the
// operand that dies. Ops and shapes decide, never names. Run it once, after the other normalising
// passes but before hoist-updates; how many blocks is the planner's choice (passes/plan_step.h).
#ifndef STOWAGE_PASSES_NORMALISE_BLOCK_ROWS_H_
#define STOWAGE_PASSES_NORMALISE_BLOCK_ROWS_H_

#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <memory>
#include <string>

#include "passes/manage/pass.h"

namespace stowage::passes {

struct BlockRowsOptions {
  int64_t blocks = 1;  // at most so many blocks in a region; 1: the graph stays as it is
};

class BlockRows : public Pass {
 public:
  explicit BlockRows(BlockRowsOptions options = {}) : options_(options) {}
  /// Errors: kInvalidArgument for fewer than 1 block.
  static ir::Expected<std::unique_ptr<Pass>> parse(llvm::StringRef text);
  std::string name() const override { return "block-rows"; }
  std::string options() const override;
  ir::Expected<PassReport> run(PassState& state) const override;

 private:
  BlockRowsOptions options_;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_BLOCK_ROWS_H_
