// SPDX-License-Identifier: Apache-2.0
//
// What composite ops read on the host in torch 2.11.0, and differently in other versions.
#ifndef STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_VALUE_READS_H_
#define STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_VALUE_READS_H_

namespace stowage::runtime {

/// The CPU's quantile() asks an op whether q is valid.
constexpr bool kQuantileReadsRanks = false;

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_2_11_0_THIS_TORCH_VALUE_READS_H_
