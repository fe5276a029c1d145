// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/torch_version.h"

#include <ATen/Version.h>
#include <gtest/gtest.h>

namespace stowage::runtime {
namespace {

TEST(TorchVersion, OfALibraryIsReadFromItsSettings) {
  EXPECT_EQ(versionInConfig("PERF_WITH_AVX2=1, TORCH_VERSION=2.16.1, USE_CUDA=1, "), "2.16.1");
  EXPECT_EQ(versionInConfig("TORCH_VERSION=2.16.1\n"), "2.16.1");
  EXPECT_EQ(versionInConfig("PyTorch built with:\n  - GCC 13.3\n"), "");
}

// Where it is not said, a loaded libtorch of another version would not be noticed.
TEST(TorchVersion, TheLoadedLibraryIsThatOfTheHeaders) {
  EXPECT_EQ(versionInConfig(at::show_config()), torchVersion());
  EXPECT_EQ(ir::describe(checkLoadedTorch()), "");
}

}  // namespace
}  // namespace stowage::runtime
