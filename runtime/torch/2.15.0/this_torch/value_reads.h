// SPDX-License-Identifier: Apache-2.0
//
// What composite ops read on the host in torch 2.15.0, and differently in other versions.
#ifndef STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_VALUE_READS_H_
#define STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_VALUE_READS_H_

namespace stowage::runtime {

/// The CPU's quantile() reads q to check it, and for one q which rank it is, and asks no op.
constexpr bool kQuantileReadsRanks = true;

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_2_15_0_THIS_TORCH_VALUE_READS_H_
