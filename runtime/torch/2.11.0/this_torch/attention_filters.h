// SPDX-License-Identifier: Apache-2.0
//
// What decides on attention kernels for CUDA in torch 2.11.0 and differs between versions. Source:
// sdp_utils.cpp (cuda); tests/unit/runtime/torch/internals/sdpa_choice_test.cpp asks libtorch's own
// code.
#ifndef STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_ATTENTION_FILTERS_H_
#define STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_ATTENTION_FILTERS_H_

#include <ATen/native/transformers/sdp_utils_cpp.h>

namespace stowage::runtime {

/// The call as the filters see it.
inline sdp::sdp_params forFilters(const sdp::sdp_params& call) { return call; }

/// A kernel that groups queries takes any number of them for each key, others one.
template <bool kGroups, bool kSameHeads = true>
bool headsFit(const sdp::sdp_params& call) {
  return sdp::check_batch_size_and_num_heads_dense<kGroups, kSameHeads>(call, false);
}
constexpr bool kEfficientGroupsQueries = false;

/// `alignment` in elements.
inline bool efficientTakesOffsets(const sdp::sdp_params&, int64_t, int /*capability*/) {
  return true;
}

/// What cuDNN does not take beside what sizes and types say.
inline bool cudnnTakesCall(const sdp::sdp_params&, int /*capability*/, int /*cudnn*/) {
  return true;
}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_ATTENTION_FILTERS_H_
