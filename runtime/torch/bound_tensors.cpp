// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/bound_tensors.h"

#include <c10/core/TensorImpl.h>

#include <utility>

#include "runtime/torch/torch_boundary.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {

namespace {

c10::intrusive_ptr<c10::StorageImpl> makeStorage(Bytes bytes, c10::Device device) {
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), c10::SymInt(bytes.value()),
      c10::DataPtr(nullptr, device), /*allocator=*/nullptr, /*resizable=*/false);
}

at::Tensor makeTensor(c10::Storage storage, const ir::TensorType& type) {
  const auto key = storage.device().is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::CUDA;
  at::Tensor tensor =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key),
                                               c10::scalarTypeToTypeMeta(toScalarType(type.dtype)));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(
      c10::IntArrayRef(type.sizes.data(), type.sizes.size()),
      c10::IntArrayRef(type.strides.data(), type.strides.size()), type.offset);
  return tensor;
}

}  // namespace

ir::Expected<BoundTensors> BoundTensors::make(const ir::Graph& graph, c10::Device device) {
  return callTorch("making tensors", [&] {
    BoundTensors made;
    for (const ir::Storage& storage : graph.storages()) {
      const bool onHost = storage.home == ir::Space::kHost;
      made.storages_.push_back(
          makeStorage(storage.bytes, onHost ? c10::Device(c10::DeviceType::CPU) : device));
    }
    for (const ir::Value& value : graph.values()) {
      made.tensors_.push_back(
          makeTensor(c10::Storage(made.storages_[value.storage.index()]), value.type));
    }
    return made;
  });
}

void BoundTensors::bind(ir::StorageId storage, void* address) {
  c10::StorageImpl& impl = *storages_[storage.index()];
  if (impl.data() == address) return;
  impl.set_data_ptr_noswap(c10::DataPtr(address, impl.device()));
}

const void* BoundTensors::address(ir::StorageId storage) const {
  return storages_[storage.index()]->data();
}

}  // namespace stowage::runtime
