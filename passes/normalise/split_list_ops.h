// SPDX-License-Identifier: Apache-2.0
//
// Cuts list ops of the optimizer (one launch over all parameters) into the same op over shorter
// lists, so that each bucket's parameters, gradients and states come and go on their own. All list
// ops over the same tensors get the same cuts: consecutive elements until a bucket is full, a
// bigger tensor alone. Results keep their bits: these ops treat each tensor of the list by itself
// (the reasons per op: passes/normalise/README.md). Left whole, and counted: ops whose lists do not
// line up, whose scalars are one tensor for the whole list, or that name one written storage in two
// elements. Normalising pass, before costing.
#ifndef STOWAGE_PASSES_NORMALISE_SPLIT_LIST_OPS_H_
#define STOWAGE_PASSES_NORMALISE_SPLIT_LIST_OPS_H_

#include <memory>
#include <string>

#include "ir/base/units.h"
#include "passes/manage/pass.h"

namespace stowage::passes {

struct SplitListOpsOptions {
  /// Bytes of a bucket, counted by the largest tensor that the ops name at each element.
  Bytes bucketBytes{int64_t{64} << 20};
};

class SplitListOps : public Pass {
 public:
  explicit SplitListOps(SplitListOpsOptions options = {}) : options_(options) {}
  /// Errors: kInvalidArgument for unknown options and a bucket of no bytes.
  static ir::Expected<std::unique_ptr<Pass>> parse(llvm::StringRef options);

  std::string name() const override { return "split-list-ops"; }
  std::string options() const override;
  ir::Expected<PassReport> run(PassState& state) const override;

 private:
  SplitListOpsOptions options_;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_SPLIT_LIST_OPS_H_
