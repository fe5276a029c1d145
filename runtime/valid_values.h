// SPDX-License-Identifier: Apache-2.0
//
// Numbers that an op accepts as arguments when it is measured rather than used: floats between 0.1
// and 1 (so that roots, logarithms and quotients stay finite), integers that are indices kept below
// what they index. Which arguments are indices is a table; other integers are 0 or 1.
#ifndef STOWAGE_RUNTIME_VALID_VALUES_H_
#define STOWAGE_RUNTIME_VALID_VALUES_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>

#include "ir/graph.h"

namespace stowage::runtime {

/// Smallest number that an integer argument must stay below; 2 unless the table says more. The
/// value must be a tensor argument of the node.
int64_t findIntegerBound(const ir::Graph& graph, ir::NodeId node, ir::ValueId value);

/// Fills `bytes` with elements of `dtype`. The same seed gives the same numbers.
void fillValidValues(ir::DType dtype, int64_t integerBound, uint64_t seed,
                     llvm::MutableArrayRef<uint8_t> bytes);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_VALID_VALUES_H_
