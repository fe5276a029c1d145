// SPDX-License-Identifier: Apache-2.0
//
// What libtorch's kernels without data answered before, by op and shapes of the arguments: each
// step of a training is traced again, and in a process with Python many of those kernels are
// written in it, which takes ten times as long as all else of a trace. A call -> its outputs, with
// the call's own tensors where the earlier call's were. Invariants: the key holds all that shapes
// can depend on. Of an op that takes tensors, the value of a floating number among its arguments (a
// rate, a factor) is none of that. Not here: our own rules, which are fast.
#ifndef STOWAGE_RUNTIME_CAPTURE_OPS_OUTPUT_CACHE_H_
#define STOWAGE_RUNTIME_CAPTURE_OPS_OUTPUT_CACHE_H_

#include <string>
#include <unordered_map>

#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {

class OutputCache {
 public:
  /// runMetaKernel(call), or what it would return.
  Outputs runMetaKernel(const TracedCall& call);

 private:
  struct Kept {
    Outputs outputs;              // with undefined bases
    std::vector<int32_t> baseOf;  // by tensor of the outputs: position among the arguments, or -1
  };
  std::unordered_map<std::string, Kept> kept_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_OPS_OUTPUT_CACHE_H_
