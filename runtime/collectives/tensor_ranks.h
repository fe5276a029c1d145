// SPDX-License-Identifier: Apache-2.0
//
// Ranks whose tensors are on GPUs: what their collectives move bytes with. Calls are enqueued on
// libtorch's current stream and return at once.
#ifndef STOWAGE_RUNTIME_COLLECTIVES_TENSOR_RANKS_H_
#define STOWAGE_RUNTIME_COLLECTIVES_TENSOR_RANKS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "ir/base/error.h"

namespace stowage::runtime {

class TensorRanks {
 public:
  virtual ~TensorRanks() = default;
  TensorRanks(const TensorRanks&) = delete;
  TensorRanks& operator=(const TensorRanks&) = delete;

  virtual int64_t count() const = 0;
  /// own [n, ...] -> all [count() * n, ...], in rank order. Errors: kEnvironment.
  virtual ir::Error allGather(const at::Tensor& own, const at::Tensor& all) = 0;
  /// Both [count() * n, ...]: part r goes to rank r; part r of `received` is what rank r had for
  /// this one. Errors: kEnvironment.
  virtual ir::Error allToAll(const at::Tensor& parts, const at::Tensor& received) = 0;

 protected:
  TensorRanks() = default;
};

/// While it lives, collectives of its thread on a GPU's tensors use these ranks; null: none.
class TensorRanksScope {
 public:
  explicit TensorRanksScope(TensorRanks* ranks);
  ~TensorRanksScope();
  TensorRanksScope(const TensorRanksScope&) = delete;
  TensorRanksScope& operator=(const TensorRanksScope&) = delete;

 private:
  TensorRanks* before_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_COLLECTIVES_TENSOR_RANKS_H_
