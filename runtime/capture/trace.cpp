// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/trace.h"

#include <cassert>
#include <utility>

#include "runtime/torch_types.h"

namespace stowage::runtime {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdu;
}

uint64_t hashOf(const TracedTensor& tensor) {
  uint64_t hash = mix(tensor.storage, static_cast<uint64_t>(tensor.type.dtype));
  hash = mix(hash, static_cast<uint64_t>(tensor.type.offset));
  for (const int64_t size : tensor.type.sizes) hash = mix(hash, static_cast<uint64_t>(size));
  for (const int64_t stride : tensor.type.strides) hash = mix(hash, static_cast<uint64_t>(stride));
  return hash;
}

}  // namespace

StorageKey StorageTable::keyOf(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  const c10::StorageImpl& impl = *storage.unsafeGetStorageImpl();
  const FakeId id = fakeId(impl);
  if (id == 0) return keyOfReal(storage);
  const auto [found, isNew] = facts_.try_emplace(id);
  if (isNew) {
    found->second.bytes = static_cast<int64_t>(impl.nbytes());
    found->second.host = storage.device_type() != device_;
  }
  return id;
}

StorageKey StorageTable::keyOfReal(const c10::Storage& storage) {
  const auto [found, isNew] =
      realKeys_.try_emplace(storage.unsafeGetStorageImpl(), kFirstReal + realKeys_.size());
  if (isNew) {
    StorageFacts& facts = facts_[found->second];
    facts.bytes = static_cast<int64_t>(storage.nbytes());
    facts.host = storage.device_type() != device_;
    facts.real = storage;
  }
  return found->second;
}

const StorageFacts* StorageTable::find(StorageKey key) const {
  const auto found = facts_.find(key);
  return found == facts_.end() ? nullptr : &found->second;
}

StorageFacts& StorageTable::get(StorageKey key) {
  const auto found = facts_.find(key);
  assert(found != facts_.end() && "a storage that no recorded op touched");
  return found->second;
}

ir::ValueId TracedTensors::intern(TracedTensor tensor) {
  const uint64_t hash = hashOf(tensor);
  const auto [begin, end] = byHash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (tensors_[static_cast<size_t>(it->second)] == tensor) return ir::ValueId(it->second);
  }
  const auto position = static_cast<int32_t>(tensors_.size());
  byHash_.emplace(hash, position);
  tensors_.push_back(std::move(tensor));
  return ir::ValueId(position);
}

ir::TensorType irType(const TensorShape& shape) {
  const std::optional<ir::DType> dtype = toDType(shape.dtype);
  assert(dtype && "dtypes are checked when an op is recorded");
  ir::TensorType type;
  type.dtype = *dtype;
  type.sizes.assign(shape.sizes.begin(), shape.sizes.end());
  type.strides.assign(shape.strides.begin(), shape.strides.end());
  type.offset = shape.offset;
  return type;
}

}  // namespace stowage::runtime
