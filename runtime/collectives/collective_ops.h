// SPDX-License-Identifier: Apache-2.0
//
// Collectives as ops of libtorch's dispatcher, so that a graph holds them as nodes and a launch
// calls them like others.
//   stowage::all_gather(Tensor own, int ranks) -> Tensor
//     own [n, ...], contiguous, of any type -> [ranks * n, ...]: the parts of all ranks, in rank
//     order.
//   stowage::all_to_all(Tensor parts, int ranks) -> Tensor
//     parts [ranks * n, ...], contiguous, of any type -> [ranks * n, ...]: part r goes to rank r;
//     part r of the result is what rank r had for this one.
//   stowage::add_parts(Tensor received, int ranks, bool mean) -> Tensor
//     received [ranks * n, ...], contiguous, floating -> [n, ...]: the sum, or the mean, of its
//     parts. Added in rank order, types below 32 bits in float32. No rank takes part but this one;
//     after an all_to_all it completes reduce_scatter_tensor of torch.distributed.
// Errors of the ops (c10::Error): another shape, layout or type; no ranks, or another number.
// Source of the semantics: all_gather_into_tensor and all_to_all_single of torch.distributed.
#ifndef STOWAGE_RUNTIME_COLLECTIVES_COLLECTIVE_OPS_H_
#define STOWAGE_RUNTIME_COLLECTIVES_COLLECTIVE_OPS_H_

#include "runtime/ranks/communicator.h"

namespace stowage::runtime {

/// Whom the collectives of the calling thread talk to from now on; null: nobody, and they fail.
/// `ranks` outlives its use; no other thread uses it meanwhile.
void useRanks(Communicator* ranks);

/// While it lives, collectives of its thread take every rank to have the bytes of this one. For
/// measurements of memory and local time: what a call allocates does not depend on values.
class RanksAlike {
 public:
  RanksAlike();
  ~RanksAlike();
  RanksAlike(const RanksAlike&) = delete;
  RanksAlike& operator=(const RanksAlike&) = delete;

 private:
  bool before_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_COLLECTIVES_COLLECTIVE_OPS_H_
