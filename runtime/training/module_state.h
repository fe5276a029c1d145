// SPDX-License-Identifier: Apache-2.0
//
// The state of a module and its optimizers by name: parameters ("wte.weight"), buffers and the
// optimizers' tensors ("m(wte.weight)"). The names are those of the captured graph's storages.
#ifndef STOWAGE_RUNTIME_TRAINING_MODULE_STATE_H_
#define STOWAGE_RUNTIME_TRAINING_MODULE_STATE_H_

#include <ATen/core/Tensor.h>
#include <llvm/ADT/STLFunctionalExtras.h>

#include <memory>
#include <set>
#include <string>

#include "runtime/capture/host_state/optimizer_list.h"
#include "runtime/training/training_record.h"

namespace torch::nn {
class Module;
}

namespace stowage::runtime {

struct TrainedModule {
  std::shared_ptr<torch::nn::Module> module;
  OptimizerList optimizer = {};
};

/// Names of the state, ascending.
std::set<std::string> stateNames(const TrainedModule& trained);
/// Digests of the state go into `record`.
void keepState(const TrainedModule& trained, TrainingRecord& record);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TRAINING_MODULE_STATE_H_
