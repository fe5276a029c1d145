// SPDX-License-Identifier: Apache-2.0
//
// By-layer order (layered gradient accumulation): a step of several micro-batches runs all of them
// through one stretch of layers before the next stretch, forward and then backward. So a streamed
// weight crosses the link once per stretch and not once per micro-batch, and gradients are complete
// layer by layer. Each micro-batch keeps its own order, and so do the contributions to each
// gradient. A node moves only behind what it depends on: every access keeps its version, and random
// ops, collectives and unknown ops keep their order. The graph stays as it is where there are no
// micro-batches, where no cut pays (micro_batches.h), or where dependencies hold too much back, as
// a chain of random ops does. Normalising pass; run it before hoist-updates.
#ifndef STOWAGE_PASSES_NORMALISE_ORDER_BY_LAYER_H_
#define STOWAGE_PASSES_NORMALISE_ORDER_BY_LAYER_H_

#include <llvm/ADT/StringRef.h>

#include <memory>
#include <string>

#include "ir/base/units.h"
#include "passes/manage/pass.h"

namespace stowage::passes {

struct OrderByLayerOptions {
  /// Least bytes of weights in a stretch. 0: as many as all micro-batches have alive at its end.
  Bytes stretchBytes;
};

class OrderByLayer : public Pass {
 public:
  explicit OrderByLayer(OrderByLayerOptions options = {}) : options_(options) {}
  /// Errors: kInvalidArgument for unknown options.
  static ir::Expected<std::unique_ptr<Pass>> parse(llvm::StringRef text);
  std::string name() const override { return "order-by-layer"; }
  std::string options() const override;
  ir::Expected<PassReport> run(PassState& state) const override;

 private:
  OrderByLayerOptions options_;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_ORDER_BY_LAYER_H_
