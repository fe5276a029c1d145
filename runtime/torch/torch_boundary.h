// SPDX-License-Identifier: Apache-2.0
//
// Converts libtorch's exceptions into error values. Every call that may throw goes through
// callTorch, and this is the only file of the libraries with a `try`.
#ifndef STOWAGE_RUNTIME_TORCH_TORCH_BOUNDARY_H_
#define STOWAGE_RUNTIME_TORCH_TORCH_BOUNDARY_H_

#include <c10/util/Exception.h>
#include <llvm/ADT/StringRef.h>

#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "ir/base/error.h"

namespace stowage::runtime {

namespace detail {
inline ir::Error foreignError(ir::ErrorCode code, llvm::StringRef what, const char* text) {
  return ir::makeError(code, what.empty() ? std::string(text) : what.str() + ": " + text);
}
/// The CPU's allocator refuses memory with an error of no class of its own, and CUDA refuses it to
/// whatever needs some: a kernel that is loaded when it first runs.
inline ir::ErrorCode codeFor(const c10::Error& error) {
  constexpr int32_t kCudaErrorMemoryAllocation = 2;
  constexpr int32_t kCudaErrorIllegalAddress = 700;
  constexpr int32_t kCudaErrorAssert = 710;
  constexpr int32_t kCudaErrorMisaligned = 716;  // and an address space, a program counter
  constexpr int32_t kCudaErrorLaunchFailure = 719;
  if (dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr) {
    return ir::ErrorCode::kUnsupported;
  }
  const auto* accelerator = dynamic_cast<const c10::AcceleratorError*>(&error);
  if (accelerator != nullptr) {
    const int32_t code = accelerator->get_error_code();
    if (code == kCudaErrorMemoryAllocation) return ir::ErrorCode::kOutOfDeviceMemory;
    // What a kernel did wrong is a bug of somebody's; the rest is the GPU's or the driver's.
    const bool isOfKernel = code == kCudaErrorIllegalAddress || code == kCudaErrorAssert ||
                            (code >= kCudaErrorMisaligned && code <= kCudaErrorLaunchFailure);
    return isOfKernel ? ir::ErrorCode::kTorch : ir::ErrorCode::kCuda;
  }
  const bool isRefused =
      llvm::StringRef(error.what_without_backtrace()).contains("can't allocate memory");
  return isRefused ? ir::ErrorCode::kOutOfDeviceMemory : ir::ErrorCode::kTorch;
}
}  // namespace detail

/// Calls `function` and returns what it returns: Expected<T>, or Error when it returns nothing or
/// an Error of its own. `what` is named in the message: an op, a file; "" if the caller names it.
/// Errors: kOutOfDeviceMemory for refused memory, kUnsupported for c10::NotImplementedError, kCuda
/// for what else the GPU reports but what a kernel did wrong (of work that may have begun long
/// before), else kTorch; with libtorch's text.
template <typename Function>
auto callTorch(llvm::StringRef what, Function&& function)
    -> std::conditional_t<std::is_void_v<std::invoke_result_t<Function>> ||
                              std::is_same_v<std::invoke_result_t<Function>, ir::Error>,
                          ir::Error, ir::Expected<std::invoke_result_t<Function>>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Function>>) {
      std::forward<Function>(function)();
      return ir::success();
    } else {
      return std::forward<Function>(function)();
    }
  } catch (const c10::OutOfMemoryError& e) {
    return detail::foreignError(ir::ErrorCode::kOutOfDeviceMemory, what,
                                e.what_without_backtrace());
  } catch (const c10::Error& e) {
    return detail::foreignError(detail::codeFor(e), what, e.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return detail::foreignError(ir::ErrorCode::kOutOfDeviceMemory, what, "out of memory");
  } catch (const std::exception& e) {
    return detail::foreignError(ir::ErrorCode::kTorch, what, e.what());
  } catch (...) {  // code of somebody else may throw anything
    return detail::foreignError(ir::ErrorCode::kTorch, what,
                                "an exception that is no std::exception was thrown");
  }
}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_TORCH_BOUNDARY_H_
