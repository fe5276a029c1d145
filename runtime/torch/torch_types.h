// SPDX-License-Identifier: Apache-2.0
//
// The IR's types and op names in libtorch's terms, and back.
#ifndef STOWAGE_RUNTIME_TORCH_TORCH_TYPES_H_
#define STOWAGE_RUNTIME_TORCH_TORCH_TYPES_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <llvm/ADT/StringRef.h>

#include <optional>

#include "ir/base/error.h"
#include "ir/graph/type.h"
#include "ir/schedule/target.h"

namespace stowage::runtime {

c10::ScalarType toScalarType(ir::DType dtype);
std::optional<ir::DType> toDType(c10::ScalarType type);

/// The one device that a step is for: the CPU, or the first GPU.
c10::Device toDevice(ir::DeviceKind kind);

/// `values` with the strides of `type`, whose sizes they have: the bytes from its first element on
/// are those of a storage that `type` covers. `values` itself if it is laid out so, and no view by
/// conj(), whose bytes are other numbers.
at::Tensor layOutAs(const ir::TensorType& type, const at::Tensor& values);
/// Do kernels see the same layout? Strides of dimensions that are no longer than 1 count only where
/// they make an image channels last.
bool hasLayout(const at::Tensor& tensor, const ir::TensorType& type);

/// The registered op of "aten.mm.default". Errors: kUnsupported when there is none.
ir::Expected<c10::OperatorHandle> findOperator(llvm::StringRef op);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_TORCH_TYPES_H_
