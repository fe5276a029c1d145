// SPDX-License-Identifier: Apache-2.0
#include "tools/models/projection.h"

#include <torch/nn/init.h>

#include <cmath>

namespace stowage::tools {

ProjectionImpl::ProjectionImpl(int64_t in, int64_t out, const Adapters& adapters)
    : in_(in), out_(out), pairs_(adapters.pairs) {
  torch::Tensor weight = torch::empty({out, in});
  torch::nn::init::normal_(weight, 0.0, 0.02);
  if (pairs_.defined()) {
    const Nf4Weight stored = quantise(weight);
    weight_ = register_parameter("weight", stored.codes, /*requires_grad=*/false);
    scales_ = register_parameter("weight_scales", stored.scales, /*requires_grad=*/false);
  } else {
    weight_ = register_parameter("weight", weight);
  }
  if (adapters.rank == 0) return;
  scale_ = adapters.alpha / static_cast<double>(adapters.rank);
  loraA_ = register_parameter("lora_A", torch::empty({adapters.rank, in}));
  loraB_ = register_parameter("lora_B", torch::zeros({out, adapters.rank}));
  torch::nn::init::kaiming_uniform_(loraA_, std::sqrt(5.0));
}

torch::Tensor ProjectionImpl::forward(const torch::Tensor& x) {
  const torch::Tensor y = torch::linear(x, matrix());
  if (!loraA_.defined()) return y;
  return y + scale_ * torch::linear(torch::linear(x, loraA_), loraB_);
}

torch::Tensor ProjectionImpl::matrix() const {
  if (!pairs_.defined()) return weight_;
  return dequantise({.codes = weight_, .scales = scales_}, pairs_, {out_, in_});
}

void ProjectionImpl::trainAdapter() {
  loraA_.requires_grad_(true);
  loraB_.requires_grad_(true);
}

void ProjectionImpl::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  if (!pairs_.defined()) return Module::to(device, dtype, non_blocking);
  Module::to(device, non_blocking);
  for (torch::Tensor* floats : {&scales_, &loraA_, &loraB_}) {
    floats->set_data(floats->to(dtype));
  }
}

}  // namespace stowage::tools
