// SPDX-License-Identifier: Apache-2.0
//
// What decides on attention kernels for CUDA in torch 2.15.0 and differs between versions. Source:
// sdp_utils.cpp (cuda); tests/unit/runtime/torch/internals/sdpa_choice_test.cpp asks libtorch's own
// code.
#ifndef STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_ATTENTION_FILTERS_H_
#define STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_ATTENTION_FILTERS_H_

#include <ATen/native/transformers/sdp_utils_cpp.h>

#include <c10/core/TensorImpl.h>
#include <c10/util/DimVector.h>

#include <cmath>

namespace stowage::runtime {

/// A view with one more dimension in front, and no op: on CUDA there may be no kernel for one.
inline at::Tensor asBatchOfOne(const at::Tensor& tensor) {
  at::Tensor view(
      tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), false));
  c10::DimVector sizes = {1}, strides = {tensor.size(0) * tensor.stride(0)};
  sizes.append(tensor.sizes().begin(), tensor.sizes().end());
  strides.append(tensor.strides().begin(), tensor.strides().end());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, tensor.storage_offset());
  return view;
}

/// The call as the filters see it: without a batch, it is one of one.
inline sdp::sdp_params forFilters(const sdp::sdp_params& call) {
  if (call.query.dim() != 3 || call.key.dim() != 3 || call.value.dim() != 3) return call;
  sdp::sdp_params batch = call;
  batch.query = asBatchOfOne(call.query);
  batch.key = asBatchOfOne(call.key);
  batch.value = asBatchOfOne(call.value);
  while (batch.attn_mask && batch.attn_mask->dim() < 4) {
    batch.attn_mask = asBatchOfOne(*batch.attn_mask);
  }
  if (sdp::input_requires_grad(call)) batch.query.set_requires_grad(true);
  if (call.attn_mask) batch.attn_mask->set_requires_grad(call.attn_mask->requires_grad());
  return batch;
}

/// A kernel that groups queries takes any number of them for each key; all take one key for all.
template <bool kGroups, bool kSameHeads = true>
bool headsFit(const sdp::sdp_params& call) {
  constexpr bool kTakesOneKey = true;
  return sdp::check_batch_size_and_num_heads_dense<kGroups, kSameHeads, kTakesOneKey>(call, false);
}
constexpr bool kEfficientGroupsQueries = true;

/// `alignment` in elements.
inline bool efficientTakesOffsets(const sdp::sdp_params& call, int64_t alignment, int capability) {
  if (capability < 80) return true;
  for (const at::Tensor* tensor : {&call.query, &call.key, &call.value}) {
    if (tensor->numel() > 0 && tensor->storage_offset() % alignment != 0) return false;
  }
  return true;
}

/// What cuDNN does not take beside what sizes and types say.
inline bool cudnnTakesCall(const sdp::sdp_params& call, int capability, int cudnn) {
  const double sixteenths = call.dropout * 16;
  if (sixteenths != std::floor(sixteenths)) return false;
  const bool takesWide = cudnn > 92200 && (capability == 90 || capability / 10 == 10);
  if (!takesWide || !sdp::input_requires_grad(call)) return true;
  const int64_t width = call.query.size(3), valueWidth = call.value.size(3);
  return (width <= 128 && valueWidth <= 128) || (width == 192 && valueWidth == 128) ||
         (width == 256 && valueWidth == 256);
}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_ATTENTION_FILTERS_H_
