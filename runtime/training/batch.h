// SPDX-License-Identifier: Apache-2.0
//
// What a training step reads: one tensor per input of the step, in the step's order.
#ifndef STOWAGE_RUNTIME_TRAINING_BATCH_H_
#define STOWAGE_RUNTIME_TRAINING_BATCH_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/base/error.h"

namespace stowage::runtime {

using Batch = std::vector<at::Tensor>;
/// The batch of a step of the training, from 0. The same step gets the same batch each time.
using BatchSource = std::function<ir::Expected<Batch>(int64_t step)>;

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_BATCH_H_
