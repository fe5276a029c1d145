// SPDX-License-Identifier: Apache-2.0
//
// Tensors that look real and have no memory: a plain c10::TensorImpl over a StorageImpl whose size
// is true and whose data pointer is null. Asking for the pointer throws, so no kernel can crash on
// it. The exception is what `empty` makes on the CPU: it gets address space that costs nothing
// until touched, because libtorch fills such tensors by hand (`torch::tensor({1, 2})`). Nothing is
// subclassed: autograd, version counters, views and set_data treat them as any tensor. A storage is
// told by its deleter, never by device, and carries an id that no other storage of the process ever
// has; traces hold ids, since reference counts steer autograd. Not here: which ops are recorded
// (tracer.h), which results an op has (call_results.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_FAKE_FAKE_TENSOR_H_
#define STOWAGE_RUNTIME_CAPTURE_FAKE_FAKE_TENSOR_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <memory>

#include "ir/graph/type.h"

namespace stowage::runtime {

/// 0: not a storage without memory.
using FakeId = uint64_t;

/// What made a storage without memory; kept alive as long as the storage.
using FakeOrigin = std::shared_ptr<const void>;

/// Sizes, strides and offset in elements.
struct TensorShape {
  c10::DimVector sizes;
  c10::DimVector strides;
  int64_t offset = 0;
  c10::ScalarType dtype = c10::ScalarType::Float;
  // Views that stand for other numbers than their bytes: libtorch's conj() of a complex tensor and
  // its imag() change nothing but such a mark.
  bool conjugated = false;
  bool negated = false;
};

TensorShape shapeOf(const at::Tensor& tensor);
TensorShape shapeOf(const ir::TensorType& type);
/// Bytes from a storage's start to one past the last element of `shape`.
int64_t extentOf(const TensorShape& shape);

/// With `hostWritable`, on the CPU, the data pointer can be written to until `forbidAccess`.
c10::Storage makeFakeStorage(int64_t bytes, c10::Device device, bool hostWritable,
                             FakeOrigin origin = nullptr);
/// From now on the data pointer of this storage without memory throws.
void forbidAccess(c10::StorageImpl& storage);
/// A tensor over any storage, real or not.
at::Tensor makeTensor(const c10::Storage& storage, const TensorShape& shape);

FakeId fakeId(const c10::StorageImpl& storage);
FakeId fakeId(const at::Tensor& tensor);
bool isFake(const at::Tensor& tensor);
FakeOrigin fakeOrigin(const c10::StorageImpl& storage);

/// True when host code wrote through the data pointer of a CPU storage without memory.
bool wasTouched(const c10::StorageImpl& storage);

/// Ids given from now on are at least this.
FakeId nextFakeId();

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_FAKE_FAKE_TENSOR_H_
