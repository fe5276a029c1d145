// SPDX-License-Identifier: Apache-2.0
//
// Which ATen calls a piece of libtorch code makes below autograd, and what each returns, as text:
// once with every kernel run for real on the CPU, once on tensors without memory. The first is the
// witness, the second must say the same.
// Left out by both: views (results that share an argument's storage, nothing written), values read
// back, calls on host numbers alone.
#ifndef STOWAGE_TESTS_SUPPORT_REAL_RECORDER_H_
#define STOWAGE_TESTS_SUPPORT_REAL_RECORDER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "runtime/capture/dispatch/tracer.h"

namespace stowage::tests {

/// "aten.mm.default Float[2, 3] strides=[3, 1] offset=0 #4, ... -> ...", storages numbered by first
/// appearance.
using CallTexts = std::vector<std::string>;

/// Called before each op of `recordReal` with its arguments; {} for nobody.
using ObserveCall =
    std::function<void(const runtime::OpFacts& op, llvm::ArrayRef<c10::IValue> args)>;
void observeRealCalls(ObserveCall observe);

/// Runs `code` for real. Exceptions pass through.
CallTexts recordReal(const std::function<void()>& code);

/// Called with the results of each op before its caller gets them.
using EditResults = std::function<void(const std::string& op, torch::jit::Stack& results)>;

/// Runs `code` on tensors without memory, which it must already have. `edit` may be absent. Errors:
/// as the tracer gives.
ir::Expected<CallTexts> recordFake(const ir::Target& target, const std::function<void()>& code,
                                   const EditResults& edit = {});

/// Empty when both are equal; else the first difference with its neighbours.
std::string firstDifference(const CallTexts& real, const CallTexts& fake);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_REAL_RECORDER_H_
