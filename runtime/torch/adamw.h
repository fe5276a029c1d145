// SPDX-License-Identifier: Apache-2.0
//
// AdamW whose update is a few fused kernels and whose host numbers are the same in every step, so
// that a whole training step can be a CUDA graph. A drop-in torch::optim::Optimizer. Per group:
// parameters that have a gradient -> lists per dtype and device, in order, cut into buckets ->
//   per bucket `_foreach_add_(step, 1)` and one `_fused_adamw_` with the learning rate as a device
//   tensor.
// State per parameter, on its device: exp_avg, exp_avg_sq, step (float32) and, if asked for, a
// float32 master copy. Where the state's dtype is wider than the parameter's, the fused kernel runs
// on the master (or on a float32 copy made for the step), gradients are widened, and the result is
// rounded back into the parameter. Invariants: learning rate, beta, epsilon and decay are the only
// numbers passed to kernels; step counts live on the
//   device; nothing is read back. Buckets do not change bits: the kernels are elementwise.
// Not here: amsgrad, maximize, sparse gradients, gradient clipping.
#ifndef STOWAGE_RUNTIME_TORCH_ADAMW_H_
#define STOWAGE_RUNTIME_TORCH_ADAMW_H_

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace stowage {

// The names of these options follow torch::optim, whose macro makes a setter and a getter of each.
struct AdamWOptions : torch::optim::OptimizerCloneableOptions<AdamWOptions> {
  AdamWOptions(
      double lr = 1e-3);  // NOLINT(google-explicit-constructor): as torch::optim::AdamWOptions
  TORCH_ARG(double, lr) = 1e-3;
  using Betas = std::tuple<double, double>;
  TORCH_ARG(Betas, betas) = std::make_tuple(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 1e-2;
  /// Keeps a float32 copy of every parameter of a narrower dtype and updates that one.
  TORCH_ARG(bool, master_weights) = false;
  /// Dtype of exp_avg and exp_avg_sq: the parameter's own (default) or float32. Masters imply
  /// float32.
  TORCH_ARG(std::optional<c10::ScalarType>, state_dtype);
  /// Writes the learning rate's tensor in every step, not only when it changed. For a step that is
  /// captured under a scheduler: the operations are then the same in all steps.
  TORCH_ARG(bool, lr_every_step) = false;
  /// Largest list handed to one kernel, in bytes of parameters; a larger parameter is a list of its
  /// own.
  TORCH_ARG(int64_t, bucket_bytes) = int64_t{64} << 20;

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  double get_lr() const override;
  void set_lr(double lr) override;
};

struct AdamWParamState : torch::optim::OptimizerCloneableParamState<AdamWParamState> {
  TORCH_ARG(at::Tensor, step);
  TORCH_ARG(at::Tensor, exp_avg);
  TORCH_ARG(at::Tensor, exp_avg_sq);
  TORCH_ARG(at::Tensor, master);  // undefined where the parameter is its own master

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

class AdamW : public torch::optim::Optimizer {
 public:
  explicit AdamW(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                 AdamWOptions defaults = {});
  explicit AdamW(std::vector<at::Tensor> parameters, AdamWOptions defaults = {})
      : AdamW({torch::optim::OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}

  /// A group's own options hold as they are, where it has some. Errors: c10::Error for options that
  /// make no sense.
  void add_param_group(const torch::optim::OptimizerParamGroup& group);

  at::Tensor step(LossClosure closure = nullptr) override;

  /// Brings the learning rates' tensors up to date with the options, as step() does first. To be
  /// called between replays of a CUDA graph that holds the step, since a replay runs no host code.
  void writeLearningRates();
  /// The next step makes the learning rates' tensors anew, from the options.
  void forgetLearningRates() { learningRates_.clear(); }

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct LearningRate {
    size_t group;
    c10::Device device;
    at::Tensor value;  // float32, no dimensions
    double written;
  };

  AdamWParamState& stateOf(const at::Tensor& parameter, const AdamWOptions& options);
  at::Tensor learningRateOf(size_t group, c10::Device device);
  void update(const std::vector<at::Tensor>& parameters, const AdamWOptions& options,
              const at::Tensor& learningRate);

  std::vector<LearningRate> learningRates_;  // one per group and device
};

}  // namespace stowage

#endif  // STOWAGE_RUNTIME_TORCH_ADAMW_H_
