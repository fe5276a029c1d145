// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/fake/fake_values.h"

#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/torch/torch_boundary.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {

FakeValues::FakeValues(ir::DeviceKind device) : device_(toDevice(device)) {}

ir::Error FakeValues::addStorage(const ir::Storage& storage) {
  return callTorch("a storage without memory", [&] {
    const bool onHost = storage.home == ir::Space::kHost;
    storages_.push_back(makeFakeStorage(storage.bytes.value(),
                                        onHost ? c10::Device(c10::kCPU) : device_,
                                        /*hostWritable=*/false));
  });
}

ir::Error FakeValues::addValue(const ir::Value& value) {
  return callTorch("a tensor without memory", [&] {
    tensors_.push_back(makeTensor(storages_[value.storage.index()], shapeOf(value.type)));
  });
}

ir::Error FakeValues::addAll(const ir::Graph& graph) {
  for (const ir::Storage& storage : graph.storages()) {
    if (ir::Error error = addStorage(storage)) return error;
  }
  for (const ir::Value& value : graph.values()) {
    if (ir::Error error = addValue(value)) return error;
  }
  return ir::success();
}

}  // namespace stowage::runtime
