// SPDX-License-Identifier: Apache-2.0
//
// Which profile a GPU goes by, and what each profile states.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "planner/targets/roofline.h"

namespace stowage::planner {
namespace {

std::string profileOf(const char* productName, int computeCapability) {
  ir::Expected<ir::Target> target = findProfileOfGpu(productName, computeCapability);
  return target ? target->profile : ir::describe(target.takeError());
}

struct Product {
  const char* name;
  int computeCapability;
  const char* profile;
};

constexpr Product kProducts[] = {{"NVIDIA A100-SXM4-80GB", 80, "a100"},
                                 {"NVIDIA A10G", 86, "a10g"},
                                 {"NVIDIA GeForce RTX 3090", 86, "rtx3090"},
                                 {"NVIDIA L4", 89, "l4"},
                                 {"NVIDIA L40S", 89, "l40s"},
                                 {"NVIDIA GeForce RTX 4090", 89, "rtx4090"},
                                 {"NVIDIA H100 80GB HBM3", 90, "h100"},
                                 {"NVIDIA H200", 90, "h200"},
                                 {"NVIDIA GH200 480GB", 90, "gh200"},
                                 {"NVIDIA B200", 100, "b200"},
                                 {"NVIDIA GeForce RTX 5090", 120, "rtx5090"}};

TEST(Profiles, AGpuGoesByItsName) {
  for (const Product& product : kProducts) {
    EXPECT_EQ(profileOf(product.name, product.computeCapability), product.profile);
    for (const ir::Target& other : targetProfiles()) {
      EXPECT_EQ(namesProfile(product.name, other.profile), other.profile == product.profile)
          << product.name << " and " << other.profile;
    }
  }
  EXPECT_TRUE(namesProfile("NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0", "h100"));
}

// An A10 and an L40 have other rates than the profiles whose names begin alike.
TEST(Profiles, AGpuWithoutAProfileGoesByItsArchitecture) {
  EXPECT_EQ(profileOf("NVIDIA A10", 86), "a10g");
  EXPECT_EQ(profileOf("NVIDIA L40", 89), "l40s");
  EXPECT_EQ(profileOf("NVIDIA H20", 90), "h100");
  EXPECT_EQ(profileOf("NVIDIA GB200", 100), "b200");
  const std::string none = profileOf("Tesla V100", 70);
  EXPECT_NE(none.find("'Tesla V100' (70), there are a100, "), std::string::npos) << none;
}

// Two cards were measured; kernels are those of an architecture.
TEST(Profiles, AnEstimateSaysHowFarOffItMayBe) {
  const auto errorOf = [](const char* profile) {
    return estimateErrorPercent(llvm::cantFail(findTargetProfile(profile)));
  };
  EXPECT_EQ(errorOf("h100"), 10);
  EXPECT_EQ(errorOf("h200"), 10);
  EXPECT_EQ(errorOf("gh200"), 15);
  EXPECT_EQ(errorOf("l4"), 25);
  EXPECT_EQ(errorOf("cpu"), std::nullopt);
  EXPECT_EQ(describeEstimate(llvm::cantFail(findTargetProfile("h200"))),
            "from the profile h200, not measured: +-10 % of the step's time");
}

TEST(Profiles, EachIsCompleteAndNamedInOrder) {
  std::string before;
  for (const ir::Target& target : targetProfiles()) {
    const std::string& name = target.profile;
    EXPECT_LT(before, name);
    before = name;
    EXPECT_GT(target.memory, Bytes(int64_t{8} << 30)) << name;
    EXPECT_GT(target.memoryBandwidth, target.links.hostToDevice.bandwidth) << name;
    EXPECT_GT(target.links.deviceToHost.latency, Nanoseconds(0)) << name;
    EXPECT_LE(target.links.bothPermille, 1000) << name;
    EXPECT_GT(target.kernelOverhead, Nanoseconds(0)) << name;
    std::map<ir::DType, int64_t> rates(target.flopsPerSecond.begin(), target.flopsPerSecond.end());
    EXPECT_EQ(rates.size(), 3U) << name;
    if (target.device == ir::DeviceKind::kCpu) continue;
    // Tensor cores do 2 to 17 times what vector units do.
    EXPECT_GT(rates[ir::DType::kBF16], rates[ir::DType::kF32] * 3 / 2) << name;
    EXPECT_LT(rates[ir::DType::kBF16], rates[ir::DType::kF32] * 40) << name;
    EXPECT_EQ(rates[ir::DType::kBF16], rates[ir::DType::kF16]) << name;
    EXPECT_GE(target.computeCapability, 80) << name;
    EXPECT_GT(target.cudnnVersion, 0) << name;
    EXPECT_EQ(target.reserved.size(), 2U) << name;
    EXPECT_GT(target.memory, target.outside) << name;
  }
}

}  // namespace
}  // namespace stowage::planner
