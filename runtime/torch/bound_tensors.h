// SPDX-License-Identifier: Apache-2.0
//
// The graph's tensors, made once: one StorageImpl per graph storage, one Tensor per value that
// views it. They own no bytes. A command binds storages to addresses, and every view follows; no
// tensor is made while steps run. Bind at launch on the thread that launches, never when a command
// is queued: an earlier command that still waits in the queue may need another address.
#ifndef STOWAGE_RUNTIME_TORCH_BOUND_TENSORS_H_
#define STOWAGE_RUNTIME_TORCH_BOUND_TENSORS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::runtime {

class BoundTensors {
 public:
  /// `device`: of storages with home kDevice; the others are CPU tensors. Errors: kTorch.
  static ir::Expected<BoundTensors> make(const ir::Graph& graph, c10::Device device);

  const at::Tensor& tensor(ir::ValueId value) const { return tensors_[value.index()]; }
  /// Nothing happens when the storage is bound there already.
  void bind(ir::StorageId storage, void* address);
  /// Where the storage is bound; null before the first bind.
  const void* address(ir::StorageId storage) const;

 private:
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> storages_;
  std::vector<at::Tensor> tensors_;  // by value
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_BOUND_TENSORS_H_
