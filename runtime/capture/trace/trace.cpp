// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/trace/trace.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/Allocator.h>

#include <cassert>
#include <cstring>
#include <utility>

#include "runtime/torch/torch_types.h"

namespace stowage::runtime {
namespace {

// Host code fills small tensors by hand; anything larger is data that belongs into an input.
constexpr size_t kMaxHostBytes = size_t{64} << 20;

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

/// Memory that somebody else frees (from_blob) may be gone when its bytes are wanted.
bool isBorrowed(const c10::Storage& storage) {
  // from_blob keeps a deleter of its caller's in a context; where there is none, nothing is freed.
  const c10::DeleterFnPtr deleter = storage.data_ptr().get_deleter();
  return storage.device_type() == c10::kCPU &&
         (deleter == &c10::detail::deleteNothing || deleter == &at::detail::noopDelete);
}

}  // namespace

at::Tensor copyOfBytes(const c10::Storage& storage) {
  TORCH_CHECK(storage.nbytes() <= kMaxHostBytes, "host code holds ", storage.nbytes(),
              " bytes that the step reads; make them an input or a buffer");
  const c10::Storage copy(c10::Storage::use_byte_size_t(), storage.nbytes(),
                          c10::GetAllocator(c10::kCPU));
  std::memcpy(copy.mutable_data(), storage.data(), storage.nbytes());
  TensorShape shape{.sizes = {}, .strides = {1}, .offset = 0, .dtype = c10::kByte};
  shape.sizes.push_back(static_cast<int64_t>(storage.nbytes()));
  return makeTensor(copy, shape);
}

StorageKey StorageTable::keyOf(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  const c10::StorageImpl& impl = *storage.unsafeGetStorageImpl();
  const FakeId id = fakeId(impl);
  if (id == 0) return keyOfReal(tensor);
  if (const auto input = inputs_.find(id); input != inputs_.end()) return input->second;
  const auto [found, isNew] = facts_.try_emplace(id);
  if (isNew) {
    found->second.bytes = static_cast<int64_t>(impl.nbytes());
    found->second.host = storage.device_type() != device_;
    if (transient_) transient_->push_back(id);
  }
  return id;
}

void StorageTable::setInputs(const std::vector<std::pair<at::Tensor, StorageKey>>& tensors) {
  inputs_.clear();
  for (const auto& [tensor, key] : tensors) inputs_.emplace(fakeId(tensor), key);
}

StorageKey StorageTable::keyOfReal(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  const auto [found, isNew] = realKeys_.try_emplace(storage.unsafeGetStorageImpl(), nextReal_);
  if (isNew) {
    ++nextReal_;
    if (transient_) transient_->push_back(found->second);
    StorageFacts& facts = facts_[found->second];
    facts.bytes = static_cast<int64_t>(storage.nbytes());
    facts.host = storage.device_type() != device_;
    facts.real = storage;
    if (!tensor.is_inference()) facts.version = tensor.unsafeGetTensorImpl()->version_counter();
    if (isBorrowed(storage)) facts.contents = copyOfBytes(storage);
  }
  return found->second;
}

void StorageTable::endTransient(llvm::function_ref<bool(StorageKey)> keeps) {
  if (!transient_) return;
  std::vector<StorageKey> kept;
  for (const StorageKey key : *transient_) {
    if (keeps(key)) {
      kept.push_back(key);
      continue;
    }
    const auto found = facts_.find(key);
    if (found == facts_.end()) continue;
    if (isReal(key)) realKeys_.erase(found->second.real.unsafeGetStorageImpl());
    facts_.erase(found);
  }
  keptTransient_ = std::move(kept);
  transient_.reset();
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

void TracedTensors::clear() {
  tensors_.clear();
  byHash_.clear();
}

std::unordered_set<StorageKey> StepTrace::writtenFrom(size_t begin) const {
  std::unordered_set<StorageKey> written;
  for (size_t i = begin; i < nodes.size(); ++i) {
    for (const ir::Node::Write& write : nodes[i].writes) {
      written.insert(tensors[write.value].storage);
    }
  }
  return written;
}

void StepTrace::clear() {
  tensors.clear();
  nodes.clear();
  readBacks.clear();
  firstId = 0;
  updateBegin = 0;
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
