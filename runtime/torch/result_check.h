// SPDX-License-Identifier: Apache-2.0
//
// Is a tensor that an op returned the one that the graph and the plan expect? A handful of
// comparisons per result, made after every launch: a result that lies elsewhere or has another
// layout would be read wrongly by everything that follows.
#ifndef STOWAGE_RUNTIME_TORCH_RESULT_CHECK_H_
#define STOWAGE_RUNTIME_TORCH_RESULT_CHECK_H_

#include <ATen/core/Tensor.h>

#include <string>

#include "ir/graph/type.h"

namespace stowage::runtime {

/// "" if it is; else what was found and what was expected. `address`: of the first element.
std::string findDifference(const at::Tensor& result, const ir::TensorType& type,
                           const void* address);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_RESULT_CHECK_H_
