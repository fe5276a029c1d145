// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/dispatch/tracer.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <new>
#include <utility>

#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {
namespace {

/// Answers every call that it is told of as it was made to.
class Sink : public OpSink {
 public:
  explicit Sink(std::function<void()> answer) : answer_(std::move(answer)) {}
  void recordOp(const TracedCall& /*call*/, llvm::ArrayRef<at::Tensor> /*results*/) override {
    answer_();
  }
  void recordReadBack(const at::Tensor& /*tensor*/) override { answer_(); }
  std::string place() const override { return "forward of h.3"; }

 private:
  std::function<void()> answer_;
};

/// What `answer` becomes where the call was made.
ir::PlanError whyNot(std::function<void()> answer) {
  Sink sink(std::move(answer));
  const auto origin = std::make_shared<int>();
  Tracer tracer({.target = {}, .allDevices = true, .origin = origin}, sink);
  const auto call = [&] {
    const TracingScope scope(tracer);
    at::ones({2});
  };
  const ir::PlanError thrown = ir::takePayload(callTorch("", call));
  const ir::PlanError refusal = ir::takePayload(tracer.takeRefusal());
  EXPECT_EQ(thrown.text(), refusal.text());
  const bool isMemory = refusal.code() == ir::ErrorCode::kOutOfDeviceMemory;
  EXPECT_EQ(thrown.code(), isMemory ? refusal.code() : ir::ErrorCode::kTorch);
  return refusal;
}

// The step may be fine: another machine, or this one with less on it, captures it.
TEST(Tracer, MemoryThatIsRefusedDuringACallIsNoRefusalOfTheStep) {
  const ir::PlanError error = whyNot([] { throw std::bad_alloc(); });
  EXPECT_EQ(error.code(), ir::ErrorCode::kOutOfDeviceMemory);
  EXPECT_EQ(error.text(),
            "aten.ones.default (forward of h.3) while it was captured: out of memory");
}

TEST(Tracer, WhatHasNoPlaceInAGraphIsRefusedWithItsReason) {
  const ir::PlanError error = whyNot([] { TORCH_CHECK(false, "argument x is a dictionary"); });
  EXPECT_EQ(error.code(), ir::ErrorCode::kUnsupported);
  EXPECT_EQ(error.text(),
            "aten.ones.default (forward of h.3) cannot be captured: argument x is a dictionary");
}

}  // namespace
}  // namespace stowage::runtime
