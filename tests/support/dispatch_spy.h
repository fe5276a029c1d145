// SPDX-License-Identifier: Apache-2.0
//
// Looks at every torch operation that the calling thread calls, above autograd, through torch's
// key for tests. Used to build models without memory (factories turned to the meta device) and to
// log what a step calls. Not here: fakes with storages; that is the capture's job, which uses
// another key.
#ifndef STOWAGE_TESTS_SUPPORT_DISPATCH_SPY_H_
#define STOWAGE_TESTS_SUPPORT_DISPATCH_SPY_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <functional>
#include <string>
#include <vector>

namespace stowage::tests {

/// Sees an operation and its arguments before it runs, and may change the arguments.
using Spy = std::function<void(const c10::OperatorHandle& op, torch::jit::Stack& arguments)>;

/// Has `spy` called for the operations of this thread while it lives. One at a time.
class SpyGuard {
 public:
  explicit SpyGuard(Spy spy);
  ~SpyGuard();
  SpyGuard(const SpyGuard&) = delete;
  SpyGuard& operator=(const SpyGuard&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard include_;
};

/// Makes every factory give tensors of the meta device: sizes, no bytes.
Spy onMetaDevice();

/// Appends one line per operation: its name and its numbers and switches, but no tensors.
Spy logInto(std::vector<std::string>& lines);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_DISPATCH_SPY_H_
