// SPDX-License-Identifier: Apache-2.0
//
// What the planner and the verifier may assume about an op.
// The table is data (op_table.cpp). An op outside the table gets the safe default: no recompute, no
// in-place reuse, cost by bytes. Each row that allows recompute or in-place reuse has a conformance
// test on the real op.
#ifndef STOWAGE_IR_GRAPH_OP_TABLE_H_
#define STOWAGE_IR_GRAPH_OP_TABLE_H_

#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <string>

namespace stowage::ir {

/// Does the op give the same bits for the same bits? kInDeterministicMode: only with deterministic
/// algorithms switched on (attention backward on CUDA, index_put accumulate on CPU).
enum class Repeatable : uint8_t { kYes, kInDeterministicMode, kNo };

/// How work is counted for the roofline (planner/targets/roofline.h).
enum class CostKind : uint8_t {
  kBytes,        // every operand and result once through memory (pointwise, copies, reductions)
  kMatmul,       // mm addmm bmm baddbmm: 2 m n k
  kConvolution,  // forward; backward counts input and weight gradients as asked for by output_mask
  kAttention,    // forward: 4 b h s_q s_k d (half when causal); backward 2.5 times that
  kFree          // no device work
};

struct OpInfo {
  const char* op = "";  // "aten.gelu.default"
  Repeatable repeatable = Repeatable::kNo;
  bool recomputable =
      false;            // has no side effect beyond its results (random draws allowed, see random)
  bool random = false;  // draws: originals keep their order, recomputes restore the RNG state
  /// Op that a recompute calls instead, for ops that also update an operand as a side effect: same
  /// arguments in the same places, but the operands that the node writes are passed as undefined,
  /// so that a recompute neither reads nor writes them. "": the op itself, with all its arguments.
  const char* replayForm = "";
  /// Schema index of the operand whose bytes result 0 may reuse in place; -1: none. Only when both
  /// have the same type (dtype included), dense, and no other operand views that storage with
  /// another type.
  int8_t inPlaceOperand = -1;
  int8_t inPlaceOperand2 = -1;  // a second candidate
  CostKind cost = CostKind::kBytes;
  bool known = false;  // false: the cautious default for an op not in the table
};

/// Never fails: unknown ops get the safe default. The reference is valid for the whole process.
const OpInfo& lookUpOp(llvm::StringRef op);
/// Whether two launches of `op` on the same bytes give the same bytes.
bool repeatsItsBits(const OpInfo& op, bool deterministicMode);
/// Bumped when a row changes in a way that makes an old plan illegal (V28).
int opTableVersion();
/// All rows, in order of name: for conformance tests and `stowage doctor`.
struct OpTableView {
  const OpInfo* begin_;
  const OpInfo* end_;
  const OpInfo* begin() const { return begin_; }
  const OpInfo* end() const { return end_; }
};
OpTableView allOps();

}  // namespace stowage::ir

#endif  // STOWAGE_IR_GRAPH_OP_TABLE_H_
