// SPDX-License-Identifier: Apache-2.0
//
// Which ops make views, and where a view starts. Knows nothing about storages.
#ifndef STOWAGE_PASSES_NORMALISE_VIEW_OPS_H_
#define STOWAGE_PASSES_NORMALISE_VIEW_OPS_H_

#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <optional>

#include "ir/graph/graph.h"

namespace stowage::passes {

enum class ViewKind : uint8_t {
  kNone,       // not a view
  kAlways,     // results are views of the first operand
  kSometimes,  // a view or a copy, as recorded
};

ViewKind viewKind(llvm::StringRef op);

/// The element at which result `index` of a view node starts, if the op's arguments say so;
/// relative to the storage's base, in elements of the operand. Ops that leave the start alone give
/// the operand's offset.
std::optional<int64_t> computeViewOffset(const ir::Graph& graph, const ir::Node& node,
                                         size_t index);

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_NORMALISE_VIEW_OPS_H_
