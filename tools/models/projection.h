// SPDX-License-Identifier: Apache-2.0
//
// The matrices of `llama`: trained, or frozen with a trained low-rank adapter beside them, frozen
// ones also in 4 bits. Sources: Hu et al., "LoRA", 2021, section 4.1; nf4.h.
// Invariants: a matrix in 4 bits stays so when the module moves to another device or dtype.
#ifndef STOWAGE_TOOLS_MODELS_PROJECTION_H_
#define STOWAGE_TOOLS_MODELS_PROJECTION_H_

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "tools/models/nf4.h"

namespace stowage::tools {

/// What all frozen matrices of a model have in common.
struct Adapters {
  int64_t rank = 0;  // 0: no adapters, all weights train
  double alpha = 0;
  torch::Tensor pairs = {};  // of nf4.h, owned by the model; undefined: weights keep their dtype
};

/// y = W x. With a rank, W is frozen and y = W x + alpha / rank * B A x, where B starts at zero.
class ProjectionImpl : public torch::nn::Module {
 public:
  ProjectionImpl(int64_t in, int64_t out, const Adapters& adapters);

  /// x [..., in] -> [..., out]
  torch::Tensor forward(const torch::Tensor& x);
  void trainAdapter();

  using Module::to;
  /// Codes stay bytes.
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking) override;

 private:
  torch::Tensor matrix() const;

  int64_t in_, out_;
  torch::Tensor weight_;          // [out, in], or the codes
  torch::Tensor scales_, pairs_;  // of a matrix in 4 bits
  torch::Tensor loraA_, loraB_;
  double scale_ = 0;
};
TORCH_MODULE(Projection);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MODELS_PROJECTION_H_
