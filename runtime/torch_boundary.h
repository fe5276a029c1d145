// SPDX-License-Identifier: Apache-2.0
//
// The one door between exceptions and errors: everything that may throw inside libtorch, or inside
// a user's closure, is called through `callTorch`, and no other file has a `try`.
// kOutOfDeviceMemory for c10::OutOfMemoryError, kTorch for everything else, with the text of the
// exception but without its backtrace.
#ifndef STOWAGE_RUNTIME_TORCH_BOUNDARY_H_
#define STOWAGE_RUNTIME_TORCH_BOUNDARY_H_

#include <c10/util/Exception.h>

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "ir/error.h"

namespace stowage::runtime {

/// Runs `function`. Its result, or the exception as an error whose text begins with `what`
/// (unless that is empty).
template <typename Function>
auto callTorch(const std::string& what, Function&& function) {
  using Result = std::invoke_result_t<Function>;
  using Answer = std::conditional_t<std::is_void_v<Result>, ir::Error, ir::Expected<Result>>;
  const auto fail = [&](ir::ErrorCode code, const std::string& why) {
    return Answer(ir::makeError(code, what.empty() ? why : what + ": " + why));
  };
  try {
    if constexpr (std::is_void_v<Result>) {
      std::forward<Function>(function)();
      return Answer(ir::success());
    } else {
      return Answer(std::forward<Function>(function)());
    }
  } catch (const c10::OutOfMemoryError& error) {
    return fail(ir::ErrorCode::kOutOfDeviceMemory, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    return fail(ir::ErrorCode::kTorch, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return fail(ir::ErrorCode::kTorch, error.what());
  }
}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_BOUNDARY_H_
