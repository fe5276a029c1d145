// SPDX-License-Identifier: Apache-2.0
#include "tests/support/dispatch_spy.h"

#include <torch/library.h>

#include <cassert>
#include <sstream>
#include <utility>

namespace stowage::tests {
namespace {

constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

Spy& current() {
  static Spy spy;
  return spy;
}

void callThroughSpy(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard below(kKey);
  current()(op, *stack);
  op.callBoxed(stack);
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&callThroughSpy>());
}

c10::IValue& argument(const c10::OperatorHandle& op, torch::jit::Stack& stack, size_t index) {
  return torch::jit::peek(stack, index, op.schema().arguments().size());
}

}  // namespace

SpyGuard::SpyGuard(Spy spy) : include_(kKey) {
  assert(!current() && "a spy is at work already");
  current() = std::move(spy);
}

SpyGuard::~SpyGuard() { current() = nullptr; }

Spy onMetaDevice() {
  return [](const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const auto& arguments = op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].name() == "device") argument(op, stack, i) = c10::Device(c10::kMeta);
    }
  };
}

Spy logInto(std::vector<std::string>& lines) {
  return [&lines](const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    std::ostringstream line;
    line << op.schema().operator_name();
    for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
      const c10::IValue& value = argument(op, stack, i);
      if (value.isScalar() || value.isIntList() || value.isDoubleList()) line << ' ' << value;
    }
    lines.push_back(line.str());
  };
}

}  // namespace stowage::tests
