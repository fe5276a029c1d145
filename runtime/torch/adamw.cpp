// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/serialize.h>

#include <algorithm>
#include <limits>
#include <memory>

namespace stowage {
namespace {

/// The dtype that the kernel computes and keeps its state in.
c10::ScalarType computeDtype(const at::Tensor& parameter, const AdamWOptions& options) {
  if (options.master_weights()) return c10::ScalarType::Float;
  return options.state_dtype().value_or(parameter.scalar_type());
}

void checkOptions(const AdamWOptions& options) {
  const auto [beta1, beta2] = options.betas();
  TORCH_CHECK(options.lr() >= 0, "learning rate is ", options.lr(), ", expected at least 0");
  TORCH_CHECK(options.eps() >= 0, "eps is ", options.eps(), ", expected at least 0");
  TORCH_CHECK(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1, "betas are ", beta1, " and ",
              beta2, ", expected in [0, 1)");
  TORCH_CHECK(options.weight_decay() >= 0, "weight_decay is ", options.weight_decay(),
              ", expected at least 0");
  TORCH_CHECK(options.bucket_bytes() > 0, "bucket_bytes is ", options.bucket_bytes(),
              ", expected above 0");
  TORCH_CHECK(!options.master_weights() || !options.state_dtype() ||
                  *options.state_dtype() == c10::ScalarType::Float,
              "state_dtype is ", *options.state_dtype(), ", master weights need Float");
}

bool hasSameKind(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

/// Cuts the parameters that have a gradient into lists of one dtype and device of at most
/// `bucketBytes`, keeping their order inside a list; a larger parameter is a list of its own.
std::vector<std::vector<at::Tensor>> makeBuckets(const std::vector<at::Tensor>& parameters,
                                                 int64_t bucketBytes) {
  struct Bucket {
    std::vector<at::Tensor> parameters;
    int64_t bytes;
  };
  std::vector<Bucket> buckets;
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    const auto bytes = static_cast<int64_t>(parameter.nbytes());
    const auto last = std::find_if(buckets.rbegin(), buckets.rend(), [&](const Bucket& bucket) {
      return hasSameKind(bucket.parameters.front(), parameter);
    });
    if (last == buckets.rend() || last->bytes + bytes > bucketBytes) {
      buckets.push_back({{parameter}, bytes});
    } else {
      last->parameters.push_back(parameter);
      last->bytes += bytes;
    }
  }
  std::vector<std::vector<at::Tensor>> lists;
  for (Bucket& bucket : buckets) lists.push_back(std::move(bucket.parameters));
  return lists;
}

}  // namespace

AdamWOptions::AdamWOptions(double lr) : lr_(lr) {}
double AdamWOptions::get_lr() const { return lr(); }
void AdamWOptions::set_lr(double lr) { this->lr(lr); }

void AdamWOptions::serialize(torch::serialize::OutputArchive& archive) const {
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(lr);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(betas);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(eps);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(weight_decay);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(master_weights);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(state_dtype);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(lr_every_step);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(bucket_bytes);
}

void AdamWOptions::serialize(torch::serialize::InputArchive& archive) {
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, lr);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(Betas, betas);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, eps);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, weight_decay);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(bool, master_weights);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG_OPTIONAL(c10::ScalarType, state_dtype);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(bool, lr_every_step);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(int64_t, bucket_bytes);
}

void AdamWParamState::serialize(torch::serialize::OutputArchive& archive) const {
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(step);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(exp_avg);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(exp_avg_sq);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(master);
}

void AdamWParamState::serialize(torch::serialize::InputArchive& archive) {
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(at::Tensor, step);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(at::Tensor, exp_avg);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(at::Tensor, exp_avg_sq);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(at::Tensor, master);
}

AdamW::AdamW(const std::vector<torch::optim::OptimizerParamGroup>& groups, AdamWOptions defaults)
    : Optimizer(std::vector<torch::optim::OptimizerParamGroup>(),
                std::make_unique<AdamWOptions>(std::move(defaults))) {
  for (const auto& group : groups) add_param_group(group);
}

void AdamW::add_param_group(const torch::optim::OptimizerParamGroup& group) {
  checkOptions(
      static_cast<const AdamWOptions&>(group.has_options() ? group.options() : *defaults_));
  Optimizer::add_param_group(group);
  // libtorch 2.15 gives a group the defaults where it does not know the class of its options.
  if (group.has_options()) param_groups_.back().set_options(group.options().clone());
}

at::Tensor AdamW::step(LossClosure closure) {
  at::Tensor loss;
  if (closure) {
    const at::AutoGradMode withGradients(true);
    loss = closure();
  }
  const at::NoGradGuard withoutGradients;
  std::vector<std::vector<std::vector<at::Tensor>>> buckets;  // by parameter group
  for (size_t group = 0; group < param_groups_.size(); ++group) {
    const auto& options = static_cast<const AdamWOptions&>(param_groups_[group].options());
    buckets.push_back(makeBuckets(param_groups_[group].params(), options.bucket_bytes()));
    for (const auto& bucket : buckets.back()) learningRateOf(group, bucket.front().device());
  }
  writeLearningRates();
  for (size_t group = 0; group < param_groups_.size(); ++group) {
    const auto& options = static_cast<const AdamWOptions&>(param_groups_[group].options());
    for (const auto& bucket : buckets[group]) {
      update(bucket, options, learningRateOf(group, bucket.front().device()));
    }
  }
  return loss;
}

void AdamW::writeLearningRates() {
  const at::NoGradGuard withoutGradients;
  for (LearningRate& rate : learningRates_) {
    const auto& options = static_cast<const AdamWOptions&>(param_groups_[rate.group].options());
    if (options.lr() == rate.written && !options.lr_every_step()) continue;
    rate.value.fill_(options.lr());
    rate.written = options.lr();
  }
}

at::Tensor AdamW::learningRateOf(size_t group, c10::Device device) {
  for (const LearningRate& rate : learningRates_) {
    if (rate.group == group && rate.device == device) return rate.value;
  }
  // Filled by writeLearningRates, so that the first step does what any later one may do.
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  learningRates_.push_back({group, device, at::empty({}, options), kNothing});
  return learningRates_.back().value;
}

AdamWParamState& AdamW::stateOf(const at::Tensor& parameter, const AdamWOptions& options) {
  auto& slot = state_[parameter.unsafeGetTensorImpl()];
  if (!slot) {
    const c10::ScalarType dtype = computeDtype(parameter, options);
    TORCH_CHECK(dtype == parameter.scalar_type() || dtype == c10::ScalarType::Float,
                "state_dtype is ", dtype, " for a parameter of ", parameter.scalar_type(),
                ", expected the same or Float");
    auto state = std::make_unique<AdamWParamState>();
    state->step(at::zeros({}, parameter.options().dtype(at::kFloat)));
    state->exp_avg(at::zeros_like(parameter, parameter.options().dtype(dtype)));
    state->exp_avg_sq(at::zeros_like(parameter, parameter.options().dtype(dtype)));
    if (options.master_weights() && dtype != parameter.scalar_type()) {
      state->master(parameter.to(dtype));
    }
    slot = std::move(state);
  }
  return static_cast<AdamWParamState&>(*slot);
}

void AdamW::update(const std::vector<at::Tensor>& parameters, const AdamWOptions& options,
                   const at::Tensor& learningRate) {
  const c10::ScalarType dtype = computeDtype(parameters.front(), options);
  std::vector<at::Tensor> targets, gradients, firstMoments, secondMoments, steps;
  for (const at::Tensor& parameter : parameters) {
    TORCH_CHECK(!parameter.grad().is_sparse(), "found a sparse gradient, expected a dense one");
    const AdamWParamState& state = stateOf(parameter, options);
    // `to` copies only where the dtype differs.
    targets.push_back(state.master().defined() ? state.master() : parameter.to(dtype));
    gradients.push_back(parameter.grad().to(dtype));
    firstMoments.push_back(state.exp_avg());
    secondMoments.push_back(state.exp_avg_sq());
    steps.push_back(state.step());
  }
  const auto [beta1, beta2] = options.betas();
  at::_foreach_add_(steps, 1);
  at::_fused_adamw_(targets, gradients, firstMoments, secondMoments, /*max_exp_avg_sqs=*/{}, steps,
                    learningRate, beta1, beta2, options.weight_decay(), options.eps(),
                    /*amsgrad=*/false, /*maximize=*/false);
  if (dtype != parameters.front().scalar_type()) at::_foreach_copy_(parameters, targets);
}

void AdamW::save(torch::serialize::OutputArchive& archive) const {
  torch::optim::serialize<AdamWParamState, AdamWOptions>(archive, *this);
}

void AdamW::load(torch::serialize::InputArchive& archive) {
  torch::optim::serialize<AdamWParamState, AdamWOptions>(archive, *this);
}

}  // namespace stowage
