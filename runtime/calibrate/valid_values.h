// SPDX-License-Identifier: Apache-2.0
//
// Numbers that an op accepts as arguments when it is measured rather than used: floats between 0.1
// and 1 (so that roots, logarithms and quotients stay finite), integers that are indices kept below
// what they index. Which arguments are indices is a table; other integers are 0 or 1.
#ifndef STOWAGE_RUNTIME_CALIBRATE_VALID_VALUES_H_
#define STOWAGE_RUNTIME_CALIBRATE_VALID_VALUES_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <optional>

#include "ir/graph/graph.h"

namespace stowage::runtime {

/// Smallest number that an argument of indices must stay below; nothing if it holds none that the
/// table knows. The value must be a tensor argument of the node.
std::optional<int64_t> findIntegerBound(const ir::Graph& graph, ir::NodeId node, ir::ValueId value);

struct IntegerRange {
  int64_t begin = 0;
  int64_t end = 2;  // behind the largest
};

/// Fills `bytes` with elements of `dtype`, those wider than 8 bits in `integers` if they are
/// integers. The same seed gives the same numbers.
void fillValidValues(ir::DType dtype, IntegerRange integers, uint64_t seed,
                     llvm::MutableArrayRef<uint8_t> bytes);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CALIBRATE_VALID_VALUES_H_
