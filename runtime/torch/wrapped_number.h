// SPDX-License-Identifier: Apache-2.0
//
// Numbers inside argument stacks that are not plain: a "wrapped number" is a tensor of one element
// on the host that takes part in type promotion as a number, and elements of number lists.
#ifndef STOWAGE_RUNTIME_TORCH_WRAPPED_NUMBER_H_
#define STOWAGE_RUNTIME_TORCH_WRAPPED_NUMBER_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>

#include "runtime/executor/scalar_feed.h"

namespace stowage::runtime {

at::Tensor makeWrappedNumber(c10::ScalarType type, const ScalarValue& value);
/// Changes the number in place.
void setWrappedNumber(const at::Tensor& number, const ScalarValue& value);
/// Changes an element of a list of numbers in place.
void setListElement(const c10::IValue& list, size_t index, const c10::IValue& value);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_WRAPPED_NUMBER_H_
