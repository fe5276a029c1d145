// SPDX-License-Identifier: Apache-2.0
//
// Which profile a GPU goes by.
#include <gtest/gtest.h>

#include "planner/targets/roofline.h"

namespace stowage::planner {
namespace {

std::string profileOf(const char* productName, int computeCapability) {
  ir::Expected<ir::Target> target = findProfileOfGpu(productName, computeCapability);
  return target ? target->profile : ir::describe(target.takeError());
}

TEST(Profiles, AGpuGoesByItsNameOrItsArchitecture) {
  EXPECT_EQ(profileOf("NVIDIA H200", 90), "h200");
  EXPECT_EQ(profileOf("NVIDIA A100-SXM4-80GB", 80), "a100");
  EXPECT_EQ(profileOf("NVIDIA GeForce RTX 4090", 89), "rtx4090");
  EXPECT_EQ(profileOf("NVIDIA L40S", 89), "l40s");
  EXPECT_EQ(profileOf("NVIDIA H100 80GB HBM3", 90), "h200");
  const std::string none = profileOf("Tesla V100", 70);
  EXPECT_NE(none.find("'Tesla V100' (70), there are a100, "), std::string::npos) << none;
}

}  // namespace
}  // namespace stowage::planner
