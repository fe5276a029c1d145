// SPDX-License-Identifier: Apache-2.0
//
// For tests in which an error is no outcome: it ends the test with its text.
#ifndef STOWAGE_TESTS_SUPPORT_OR_FAIL_H_
#define STOWAGE_TESTS_SUPPORT_OR_FAIL_H_

#include <stdexcept>
#include <utility>

#include "ir/base/error.h"

namespace stowage::tests {

/// The value, or an exception with the error's text.
template <typename T>
T orFail(ir::Expected<T> value) {
  if (value) return std::move(*value);
  throw std::runtime_error(ir::describe(value.takeError()));
}
inline void orFail(ir::Error error) {
  if (error) throw std::runtime_error(ir::describe(std::move(error)));
}

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_OR_FAIL_H_
