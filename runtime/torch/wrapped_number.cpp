// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/wrapped_number.h"

#include <ATen/Dispatch.h>
#include <ATen/core/List.h>
#include <ATen/ops/empty.h>
#include <c10/core/Scalar.h>

namespace stowage::runtime {

at::Tensor makeWrappedNumber(c10::ScalarType type, const ScalarValue& value) {
  at::Tensor number = at::empty({}, at::TensorOptions().dtype(type).device(at::kCPU));
  setWrappedNumber(number, value);
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

void setWrappedNumber(const at::Tensor& number, const ScalarValue& value) {
  const c10::Scalar scalar =
      value.isInteger ? c10::Scalar(value.integer) : c10::Scalar(value.value);
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(
      at::kBool, at::kHalf, at::kBFloat16, number.scalar_type(), "setWrappedNumber",
      [&] { *number.data_ptr<scalar_t>() = scalar.to<scalar_t>(); });
}

void setListElement(const c10::IValue& list, size_t index, const c10::IValue& value) {
  if (list.isIntList()) {
    list.toIntList().set(index, value.toInt());
  } else if (list.isDoubleList()) {
    list.toDoubleList().set(index, value.toDouble());
  } else {
    list.toList().set(index, value);
  }
}

}  // namespace stowage::runtime
