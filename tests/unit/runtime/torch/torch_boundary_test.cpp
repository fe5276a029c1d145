// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/torch_boundary.h"

#include <gtest/gtest.h>

#include "ir/base/error.h"

namespace stowage::runtime {
namespace {

template <typename Throw>
ir::ErrorCode codeOf(Throw raise) {
  return ir::takePayload(callTorch("an op", raise)).code();
}

// What a GPU refuses to a kernel that is loaded when it first runs is memory too.
TEST(TorchBoundary, RefusedMemoryIsNoBug) {
  const c10::SourceLocation here{__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  EXPECT_EQ(codeOf([&] { throw c10::OutOfMemoryError(here, "no room"); }),
            ir::ErrorCode::kOutOfDeviceMemory);
  EXPECT_EQ(codeOf([&] { throw c10::AcceleratorError(here, 2, "CUDA error: out of memory"); }),
            ir::ErrorCode::kOutOfDeviceMemory);
  EXPECT_EQ(codeOf([&] { throw c10::Error(here, "DefaultCPUAllocator: can't allocate memory"); }),
            ir::ErrorCode::kOutOfDeviceMemory);
  EXPECT_EQ(codeOf([] { throw std::bad_alloc(); }), ir::ErrorCode::kOutOfDeviceMemory);
}

TEST(TorchBoundary, OtherRefusalsAreLibtorchs) {
  const c10::SourceLocation here{__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  EXPECT_EQ(
      codeOf([&] { throw c10::AcceleratorError(here, 700, "CUDA error: an illegal access"); }),
      ir::ErrorCode::kTorch);
  EXPECT_EQ(codeOf([&] { throw c10::Error(here, "size mismatch"); }), ir::ErrorCode::kTorch);
  EXPECT_EQ(codeOf([] { throw 42; }), ir::ErrorCode::kTorch);
}

TEST(TorchBoundary, WhatIsNotImplementedIsUnsupported) {
  const c10::SourceLocation here{__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  EXPECT_EQ(codeOf([&] { throw c10::NotImplementedError(here, "no kernel for this backend"); }),
            ir::ErrorCode::kUnsupported);
}

TEST(TorchBoundary, WhatTheGpuReportsOfItselfIsTheMachines) {
  const c10::SourceLocation here{__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  EXPECT_EQ(codeOf([&] { throw c10::AcceleratorError(here, 214, "uncorrectable ECC error"); }),
            ir::ErrorCode::kCuda);
}

}  // namespace
}  // namespace stowage::runtime
