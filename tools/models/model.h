// SPDX-License-Identifier: Apache-2.0
//
// The example models: training steps written the way users of libtorch write them, found by name.
// A name and `key=value` settings -> a TrainingStep on a device, or an error that lists what
// exists. Invariants:
// - Neither construction nor the closures read a tensor's values on the host, except the norm that
//   clip_grad_norm_ returns; so everything can be captured on tensors without memory.
// - Host numbers that differ from step to step (learning rates, bias corrections) occur in `update`
// alone.
// - The same seed and settings give the same bits.
// Not here: loops over steps, data files, checkpoints, anything that knows Stowage. Only
// torch::optim's stand-in stowage::AdamW is ours.
#ifndef STOWAGE_TOOLS_MODELS_MODEL_H_
#define STOWAGE_TOOLS_MODELS_MODEL_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/error.h"
#include "tools/models/settings.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

namespace stowage::tools {

/// One training step as two closures, the way users write it.
struct TrainingStep {
  /// What one step reads: a data file holds these tensors for every step, in this order.
  struct Input {
    std::string name;
    std::vector<int64_t> sizes;
    c10::ScalarType dtype;
    int64_t upperBound = 0;  // integer inputs: values are in [0, upperBound); 0: not checked
    int64_t drawBelow = 0;   // for random integers where upperBound is 0
  };

  std::shared_ptr<torch::nn::Module> module;
  std::shared_ptr<torch::optim::Optimizer> optimizer;
  std::shared_ptr<torch::optim::LRScheduler> scheduler;  // null: learning rates stay
  /// Forward, loss and backward of all micro-batches. Returns what the step reports: scalar
  /// tensors.
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)> loss;
  /// Clips, steps the optimizer, drops the gradients, steps the scheduler.
  std::function<void()> update;
  std::vector<Input> inputs;
};

/// All models, in the order in which they are best read.
const std::vector<ModelInfo>& modelCatalogue();

/// Builds a model by name with `key=value` settings on `device`. Draws its first values from
/// torch's default CPU generator. Errors: kInvalidArgument, naming what was found, what exists and
/// the nearest name.
ir::Expected<TrainingStep> makeTrainingStep(std::string_view name,
                                            const std::vector<std::string>& settings,
                                            c10::Device device = c10::Device(c10::kCPU));

/// Random inputs of one step on `device`: integers uniform below their bound, other values near
/// normal. Torch's generators are left alone.
std::vector<at::Tensor> makeInputs(const std::vector<TrainingStep::Input>& inputs, uint64_t seed,
                                   c10::Device device = c10::Device(c10::kCPU));
inline std::vector<at::Tensor> makeInputs(const TrainingStep& step, uint64_t seed,
                                          c10::Device device = c10::Device(c10::kCPU)) {
  return makeInputs(step.inputs, seed, device);
}

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MODELS_MODEL_H_
