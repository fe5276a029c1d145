// SPDX-License-Identifier: Apache-2.0
//
// libtorch's own use of the key at which steps are traced, in a process that traces none.
#include "runtime/torch/internals/trace_key.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <c10/core/DispatchKeySet.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/torch/torch_version.h"

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

TEST(TraceKey, HasNoFallback) {
  EXPECT_FALSE(c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(kTraceKey));
}

TEST(TraceKey, NoTensorHasIt) {
  for (const at::Tensor& tensor : {at::empty({2}), at::empty({2}, at::kMeta)}) {
    EXPECT_FALSE(tensor.key_set().has(kTraceKey)) << tensor.key_set();
  }
}

// What Python's modes and subclasses see of a step while it is traced.
TEST(TraceKey, ComesBeforePythonInTheOldestVersionAlone) {
  const DispatchKeySet both({DispatchKey::Python, kTraceKey});
  const bool isOldest = std::string(torchVersion()) == "2.11.0";
  EXPECT_EQ(both.highestPriorityTypeId(), isOldest ? kTraceKey : DispatchKey::Python);
}

}  // namespace
}  // namespace stowage::runtime
