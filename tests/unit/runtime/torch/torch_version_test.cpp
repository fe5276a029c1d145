// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/torch_version.h"

#include <gtest/gtest.h>

#include <string>

namespace stowage::runtime {
namespace {

// Where it does not say, another version would not be noticed.
TEST(TorchVersion, TheLoadedLibrarySaysWhichItIs) {
  EXPECT_EQ(loadedTorchVersion(), torchVersion());
}

TEST(TorchVersion, AnotherLoadedLibraryIsRefused) {
  const std::string own = torchVersion();
  EXPECT_EQ(ir::describe(checkLoadedTorch(own)), "");
  EXPECT_EQ(ir::describe(checkLoadedTorch("")), "");
  EXPECT_EQ(ir::describe(checkLoadedTorch("2.100.0")),
            "the libtorch that was loaded is 2.100.0, expected torch " + own +
                ", which this was built with: see LD_LIBRARY_PATH");
  EXPECT_EQ(ir::takePayload(checkLoadedTorch("2.100.0")).code(), ir::ErrorCode::kEnvironment);
}

}  // namespace
}  // namespace stowage::runtime
