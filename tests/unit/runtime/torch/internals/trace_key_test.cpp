// SPDX-License-Identifier: Apache-2.0
//
// libtorch's own use of the key at which steps are traced, in a process that traces none.
#include "runtime/torch/internals/trace_key.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKeySet.h>
#include <gtest/gtest.h>

namespace stowage::runtime {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

TEST(TraceKey, NoOpHasAKernelForIt) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  ASSERT_GT(dispatcher.getAllOpNames().size(), 3000U);
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    ASSERT_TRUE(op.has_value()) << toString(name);
    EXPECT_FALSE(op->hasKernelForDispatchKey(kTraceKey)) << toString(name);
  }
}

TEST(TraceKey, ComesAfterAutogradAndAutocast) {
  for (const DispatchKey above :
       {DispatchKey::AutogradCPU, DispatchKey::AutogradCUDA, DispatchKey::AutogradOther,
        DispatchKey::AutocastCPU, DispatchKey::AutocastCUDA, DispatchKey::ADInplaceOrView}) {
    EXPECT_EQ(DispatchKeySet({above, kTraceKey}).highestPriorityTypeId(), above);
  }
}

TEST(TraceKey, ComesBeforeKernelsOfDevices) {
  for (const DispatchKey below :
       {DispatchKey::CPU, DispatchKey::CUDA, DispatchKey::Meta, DispatchKey::SparseCPU}) {
    EXPECT_EQ(DispatchKeySet({below, kTraceKey}).highestPriorityTypeId(), kTraceKey);
    EXPECT_EQ(
        (DispatchKeySet({below, kTraceKey}) - DispatchKeySet(DispatchKeySet::FULL_AFTER, kTraceKey))
            .highestPriorityTypeId(),
        kTraceKey);
  }
}

TEST(TraceKey, NoTensorHasIt) {
  EXPECT_FALSE(c10::isBackendDispatchKey(kTraceKey));
  EXPECT_FALSE(c10::autograd_dispatch_keyset.has(kTraceKey));
  EXPECT_FALSE(c10::autocast_dispatch_keyset.has(kTraceKey));
}

}  // namespace
}  // namespace stowage::runtime
