// SPDX-License-Identifier: Apache-2.0
//
// Which attention kernel `scaled_dot_product_attention` takes on a CUDA target. libtorch asks the
// GPU at hand; on a machine without one it silently falls back to plain matrix products, which is
// another step. Here the target answers instead: the composite op stays libtorch's own (padding,
// masks, grouped queries), only its question "which kernel?" goes to `chooseAttention`.
// A target's compute capability, cuDNN version and deterministic mode, and the call's shapes -> a
// backend. Source: sdp_utils.cpp (cuda) of libtorch, whose device-independent filters are used as
// shipped in its header; what differs between versions is in this_torch/attention_filters.h. Not
// here: attention on the CPU, which libtorch chooses from shapes alone.
#ifndef STOWAGE_RUNTIME_TORCH_INTERNALS_SDPA_CHOICE_H_
#define STOWAGE_RUNTIME_TORCH_INTERNALS_SDPA_CHOICE_H_

#include <ATen/SDPBackend.h>
#include <ATen/core/Tensor.h>

#include <optional>

#include "ir/schedule/target.h"

namespace stowage::runtime {

struct AttentionCall {
  at::Tensor query, key, value;
  std::optional<at::Tensor> mask;
  double dropout = 0;
  bool isCausal = false;
  bool groupsQueries = false;
};

at::SDPBackend chooseAttention(const AttentionCall& call, const ir::Target& target);

/// While it lives, libtorch's question is answered for `target`, where `isFake` says that the query
/// is a tensor without memory. One at a time.
class PinnedAttention {
 public:
  PinnedAttention(const ir::Target& target, bool (*isFake)(const at::Tensor&));
  ~PinnedAttention();
  PinnedAttention(const PinnedAttention&) = delete;
  PinnedAttention& operator=(const PinnedAttention&) = delete;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_INTERNALS_SDPA_CHOICE_H_
