// SPDX-License-Identifier: Apache-2.0
//
// One tensor without memory for each value of a graph, over one storage without memory for each of
// its storages: what an op of that graph can be asked about without running it. Storages that stay
// on the host are on the CPU, the others where the step is. Not here: what is asked.
#ifndef STOWAGE_RUNTIME_CAPTURE_FAKE_FAKE_VALUES_H_
#define STOWAGE_RUNTIME_CAPTURE_FAKE_FAKE_VALUES_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"

namespace stowage::runtime {

class FakeValues {
 public:
  explicit FakeValues(ir::DeviceKind device);

  /// In the order of the graph's ids. Errors: kTorch, kOutOfDeviceMemory.
  ir::Error addStorage(const ir::Storage& storage);
  ir::Error addValue(const ir::Value& value);
  /// All of a graph's.
  ir::Error addAll(const ir::Graph& graph);

  const at::Tensor& tensorOf(ir::ValueId value) const { return tensors_[value.index()]; }
  c10::Device device() const { return device_; }

 private:
  c10::Device device_;
  std::vector<c10::Storage> storages_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_FAKE_FAKE_VALUES_H_
