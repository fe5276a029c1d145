// SPDX-License-Identifier: Apache-2.0
#include "planner/targets/torch_libraries.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "planner/targets/roofline.h"
#include "tests/support/or_fail.h"

namespace stowage::planner {
namespace {

using tests::orFail;

TEST(TorchLibraries, ATargetHasThoseOfItsTorch) {
  using Libraries = std::vector<std::pair<std::string, std::string>>;
  const ir::Target old = orFail(findTargetProfile("h100", "2.11.0"));
  EXPECT_EQ(old.libraries, (Libraries{{"cuda", "13.0"}, {"cudnn", "9.19"}, {"torch", "2.11.0"}}));
  EXPECT_EQ(old.cudnnVersion, 91900);
  const ir::Target newest = orFail(findTargetProfile("h100", "2.15.0"));
  EXPECT_EQ(newest.libraries,
            (Libraries{{"cuda", "13.2"}, {"cudnn", "9.26"}, {"torch", "2.15.0"}}));
  EXPECT_EQ(newest.cudnnVersion, 92600);
  EXPECT_EQ(orFail(findTargetProfile("cpu", "2.15.0")).libraries, (Libraries{{"torch", "2.15.0"}}));
  EXPECT_EQ(orFail(findProfileOfGpu("NVIDIA H200", 90, "2.15.0")).libraries, newest.libraries);
  EXPECT_EQ(orFail(findTargetProfile("cpu")).libraries, (Libraries{{"torch", kDefaultTorch}}));
}

TEST(TorchLibraries, AnotherTorchIsRefused) {
  for (const char* wrong : {"2.9.0", "2.11.1", "", "2.15"}) {
    ir::Expected<ir::Target> target = findTargetProfile("cpu", wrong);
    ASSERT_FALSE(static_cast<bool>(target)) << wrong;
    const ir::PlanError error = ir::takePayload(target.takeError());
    EXPECT_EQ(error.code(), ir::ErrorCode::kUnsupported);
    EXPECT_EQ(error.text(), "found torch '" + std::string(wrong) + "', expected 2.11.0 or 2.15.0");
  }
}

TEST(TorchLibraries, AGraphSaysWhatCapturedIt) {
  const auto torchBy = [](const std::string& producer) {
    ir::GraphBuilder builder("step", {.producer = producer});
    return torchOf(std::move(builder).finish());
  };
  EXPECT_EQ(torchBy("torch 2.11.0"), "2.11.0");
  EXPECT_EQ(torchBy("stowage 0.1.0, torch 2.15.0"), "2.15.0");
  EXPECT_EQ(torchBy("torch.export, torch 2.11.0"), "2.11.0");
  EXPECT_EQ(torchBy("torch.export of torch 2.9.1, torch 2.15.0"), "2.15.0");
  EXPECT_EQ(torchBy("by hand"), "");
  EXPECT_EQ(torchBy(""), "");
}

}  // namespace
}  // namespace stowage::planner
