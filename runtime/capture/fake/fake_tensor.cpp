// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/fake/fake_tensor.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/TensorImpl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "runtime/torch/torch_types.h"

namespace stowage::runtime {
namespace {

std::atomic<FakeId> lastId{0};

/// Behind the data pointer of every storage without memory.
struct FakeContext {
  FakeId id = 0;
  FakeOrigin origin;
  void* mapping = nullptr;
  size_t mappedBytes = 0;
};

void releaseFake(void* context) {
  auto* fake = static_cast<FakeContext*>(context);
  if (fake->mapping != nullptr) munmap(fake->mapping, fake->mappedBytes);
  delete fake;
}

size_t pageBytes() {
  static const auto kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return kPage;
}

/// Address space for `bytes`, without swap or memory behind it. Null when the machine refuses.
void* reserveAddresses(size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

const FakeContext* contextOf(const c10::StorageImpl& storage) {
  const c10::DataPtr& data = const_cast<c10::StorageImpl&>(storage)._mutable_data_ptr_no_checks();
  if (data.get_deleter() != &releaseFake) return nullptr;
  return static_cast<const FakeContext*>(data.get_context());
}

c10::DispatchKeySet keysOf(c10::DeviceType device) {
  return c10::DispatchKeySet(device == c10::kCUDA ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU);
}

}  // namespace

TensorShape shapeOf(const at::Tensor& tensor) {
  return {.sizes = c10::DimVector(tensor.sizes()),
          .strides = c10::DimVector(tensor.strides()),
          .offset = tensor.storage_offset(),
          .dtype = tensor.scalar_type(),
          .conjugated = tensor.is_conj(),
          .negated = tensor.is_neg()};
}

TensorShape shapeOf(const ir::TensorType& type) {
  return {.sizes = c10::DimVector(type.sizes.begin(), type.sizes.end()),
          .strides = c10::DimVector(type.strides.begin(), type.strides.end()),
          .offset = type.offset,
          .dtype = toScalarType(type.dtype)};
}

int64_t extentOf(const TensorShape& shape) {
  return static_cast<int64_t>(at::detail::computeStorageNbytes(shape.sizes, shape.strides,
                                                               c10::elementSize(shape.dtype),
                                                               static_cast<size_t>(shape.offset)));
}

c10::Storage makeFakeStorage(int64_t bytes, c10::Device device, bool hostWritable,
                             FakeOrigin origin) {
  auto context = std::make_unique<FakeContext>();
  context->id = ++lastId;
  context->origin = std::move(origin);
  if (hostWritable && device.is_cpu() && bytes > 0) {
    const size_t pages = (static_cast<size_t>(bytes) + pageBytes() - 1) / pageBytes();
    context->mappedBytes = pages * pageBytes();
    context->mapping = reserveAddresses(context->mappedBytes);
  }
  void* const address = context->mapping;
  c10::DataPtr data(address, context.release(), &releaseFake, device);
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                       static_cast<size_t>(bytes), std::move(data),
                                                       /*allocator=*/nullptr, /*resizable=*/false);
  if (address == nullptr && bytes > 0) forbidAccess(*storage);
  return storage;
}

void forbidAccess(c10::StorageImpl& storage) {
  storage.release_data_and_set_meta_custom_data_ptr_error_msg_(
      "host code asked for the bytes of a tensor without memory, whose values a planned training "
      "of Stowage has. Inside of a step: a captured step may not look at values. Outside: what the "
      "step returns has values; tensors that it leaves elsewhere (in a list, in an attribute) have "
      "none. Module and optimizers get theirs back when the planned training ends (leave() in "
      "Python, storeTo), and have them for a while by live() (read); dropping the step gives back "
      "those from before");
}

at::Tensor makeTensor(const c10::Storage& storage, const TensorShape& shape) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), keysOf(storage.device_type()), c10::scalarTypeToTypeMeta(shape.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(shape.sizes, shape.strides, shape.offset);
  if (shape.conjugated) tensor._set_conj(true);
  if (shape.negated) tensor._set_neg(true);
  return tensor;
}

FakeId fakeId(const c10::StorageImpl& storage) {
  const FakeContext* context = contextOf(storage);
  return context == nullptr ? 0 : context->id;
}

FakeId fakeId(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? fakeId(*tensor.storage().unsafeGetStorageImpl())
                                                  : 0;
}

bool isFake(const at::Tensor& tensor) { return fakeId(tensor) != 0; }

FakeOrigin fakeOrigin(const c10::StorageImpl& storage) {
  const FakeContext* context = contextOf(storage);
  return context == nullptr ? nullptr : context->origin;
}

bool wasTouched(const c10::StorageImpl& storage) {
  const FakeContext* context = contextOf(storage);
  if (context == nullptr || context->mapping == nullptr) return false;
  // In parts: one byte for every page of a vast tensor would be gigabytes.
  std::array<unsigned char, size_t{1} << 16> resident;  // 0 or 1 each; filled by mincore
  const size_t page = pageBytes();
  const size_t part = resident.size() * page;
  for (size_t at = 0; at < context->mappedBytes; at += part) {
    const size_t bytes = std::min(part, context->mappedBytes - at);
    if (mincore(static_cast<char*>(context->mapping) + at, bytes, resident.data()) != 0)
      return true;
    if (std::memchr(resident.data(), 1, bytes / page) != nullptr) return true;
  }
  return false;
}

FakeId nextFakeId() { return lastId.load() + 1; }

}  // namespace stowage::runtime
