// SPDX-License-Identifier: Apache-2.0
//
// How an error gets to Python: thrown, with one line of JSON as its text, of which
// stowage/_errors.py makes an exception of the kind that the code names.
#ifndef STOWAGE_RUNTIME_PYTHON_BINDING_THROW_ERROR_H_
#define STOWAGE_RUNTIME_PYTHON_BINDING_THROW_ERROR_H_

#include <utility>

#include "ir/base/error.h"

namespace stowage::python {

/// Nothing for success.
void throwError(ir::Error error);

template <typename T>
T takeOrThrow(ir::Expected<T> value) {
  if (!value) throwError(value.takeError());
  return std::move(*value);
}

}  // namespace stowage::python

#endif  // STOWAGE_RUNTIME_PYTHON_BINDING_THROW_ERROR_H_
