// SPDX-License-Identifier: Apache-2.0
//
// Marks updates to run on the host (ir/graph/host_updates.h). An update is all nodes of the
// optimizer that share state which one of them writes. A share of the bytes of the parameters is
// marked, first the updates with the longest way: from the last launch that has the gradient or
// reads the old parameter to the first that reads the new one, in the next step. In backward the
// last layers' gradients come first, and the next step reads these layers last.
// Nothing moves; the order of the nodes stays. Run it after hoist-updates.
#ifndef STOWAGE_PASSES_NORMALISE_HOST_UPDATES_H_
#define STOWAGE_PASSES_NORMALISE_HOST_UPDATES_H_

#include "passes/manage/pass.h"

namespace stowage::passes {

struct HostUpdatesOptions {
  int64_t percent = 100;  // of the bytes of updated parameters, rounded up to whole updates
};

class HostUpdates : public Pass {
 public:
  explicit HostUpdates(HostUpdatesOptions options = {}) : options_(options) {}
  static ir::Expected<std::unique_ptr<Pass>> parse(llvm::StringRef options);

  std::string name() const override { return "host-updates"; }
  std::string options() const override;
  /// Counters: `updates` there are, `possible` on the host, `marked`. A remark names the first that
  /// is not possible and why.
  ir::Expected<PassReport> run(PassState& state) const override;

 private:
  HostUpdatesOptions options_;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_HOST_UPDATES_H_
