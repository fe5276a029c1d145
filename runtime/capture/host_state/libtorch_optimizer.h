// SPDX-License-Identifier: Apache-2.0
//
// An optimizer of libtorch as a StepOptimizer.
// Known: torch's Adam, AdamW, SGD, RMSprop, Adagrad and stowage::AdamW. Of any other optimizer only
// the learning rates are seen here; its tensors are found in the trace and named by what made them.
#ifndef STOWAGE_RUNTIME_CAPTURE_HOST_STATE_LIBTORCH_OPTIMIZER_H_
#define STOWAGE_RUNTIME_CAPTURE_HOST_STATE_LIBTORCH_OPTIMIZER_H_

#include <memory>

#include "runtime/capture/host_state/step_optimizer.h"

namespace torch::optim {
class Optimizer;
}

namespace stowage::runtime {

/// `optimizer` outlives the result.
std::shared_ptr<StepOptimizer> viewLibtorchOptimizer(torch::optim::Optimizer& optimizer);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_HOST_STATE_LIBTORCH_OPTIMIZER_H_
