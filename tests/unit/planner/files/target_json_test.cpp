// SPDX-License-Identifier: Apache-2.0
//
// A machine and its links as JSON: every field is read back, optional ones may be absent, and
// numbers that no machine has are refused.
#include "planner/files/target_json.h"

#include <gtest/gtest.h>

namespace stowage::planner {
namespace {

/// The machine of the worked step, whose link moves a unit of 64 B per us, with all that a file
/// can say of a machine.
ir::Target makeTarget() {
  const auto link = [](int64_t latency) {
    return ir::LinkRate{.bandwidth = BytesPerSecond(64'000'000), .latency = Nanoseconds(latency)};
  };
  ir::Target target;
  target.profile = "units";
  target.device = ir::DeviceKind::kCuda;
  target.alignBytes = 64;
  target.intraOpThreads = 2;
  target.deterministic = false;
  target.libraries = {{"cudnn", "9.19"}};
  target.memory = Bytes(1000);
  target.outside = Bytes(100);
  target.flopsPerSecond = {{ir::DType::kF32, 5}, {ir::DType::kBF16, 6}};
  target.memoryBandwidth = BytesPerSecond(7);
  target.kernelOverhead = Nanoseconds(8);
  target.links = {
      .deviceToHost = link(3), .hostToDevice = link(4), .diskRead = link(5), .diskWrite = link(6)};
  target.links.bothPermille = 900;
  target.links.diskBothPermille = 800;
  target.links.besideHostPermille = 700;
  target.links.hostUpdates = BytesPerSecond(2);
  target.links.launch = Nanoseconds(9);
  target.links.betweenRanks = link(10);
  target.links.besideRanksPermille = 600;
  target.computeCapability = 90;
  target.cudnnVersion = 91900;
  return target;
}

std::string write(const ir::Target& target) {
  std::string text;
  llvm::raw_string_ostream os(text);
  JsonWriter writer(os);
  writer.beginObject();
  writeTarget(target, writer);
  writer.endObject();
  return os.str();
}

ir::Target read(const std::string& text, std::optional<JsonFault>& fault) {
  const Json document = Json::parse(text);
  return readTarget(FieldReader(document, "", fault));
}

/// The fault of the target with `from` replaced.
std::string faultWith(const std::string& from, const std::string& to) {
  std::string text = write(makeTarget());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  std::optional<JsonFault> fault;
  read(text, fault);
  return fault ? fault->pointer + ": " + fault->message : "";
}

// No two fields that could be taken for each other are equal.
TEST(TargetJson, EveryFieldIsReadBack) {
  std::optional<JsonFault> fault;
  const ir::Target target = read(write(makeTarget()), fault);
  ASSERT_FALSE(fault) << fault->pointer << fault->message;
  EXPECT_EQ(write(target), write(makeTarget()));
  EXPECT_EQ(target.alignBytes, 64);
  EXPECT_EQ(target.links.deviceToHost.latency, Nanoseconds(3));
  EXPECT_EQ(target.links.hostToDevice.latency, Nanoseconds(4));
  EXPECT_EQ(target.links.diskBothPermille, 800);
  EXPECT_EQ(target.links.besideHostPermille, 700);
  EXPECT_EQ(target.links.betweenRanks.latency, Nanoseconds(10));
  EXPECT_EQ(target.links.besideRanksPermille, 600);
}

// Equal targets are equal bytes, so rates are written by name. What is 0 is left out.
TEST(TargetJson, RatesAreSortedAndOptionalFieldsMayBeAbsent) {
  EXPECT_NE(write(makeTarget()).find(R"("flops_per_s":{"bf16":6,"f32":5})"), std::string::npos);
  ir::Target target = makeTarget();
  target.outside = Bytes(0);
  target.links.launch = Nanoseconds(0);
  target.links.diskBothPermille = target.links.besideHostPermille = 1000;
  target.links.hostUpdates = BytesPerSecond(0);
  target.links.betweenRanks.bandwidth = BytesPerSecond(0);
  target.links.besideRanksPermille = 1000;
  const std::string text = write(target);
  EXPECT_EQ(text.find("outside_bytes"), std::string::npos);
  for (const char* name : {"launch_ns", "disk_both", "beside_host", "host_updates", "ranks"}) {
    EXPECT_EQ(text.find(name), std::string::npos) << name;
  }
  std::optional<JsonFault> fault;
  EXPECT_EQ(write(read(text, fault)), text);
  EXPECT_FALSE(fault);
}

TEST(TargetJson, WhatNoMachineHasIsRefused) {
  EXPECT_EQ(faultWith("\"align_bytes\":64", "\"align_bytes\":96"),
            "/align_bytes: found 96, expected a power of two");
  EXPECT_EQ(faultWith("\"cuda\"", "\"tpu\""), "/device: found \"tpu\", expected cpu or cuda");
  EXPECT_EQ(faultWith("\"both_permille\":900", "\"both_permille\":1001"),
            "/links/both_permille: found 1001, expected a whole number from 1 to 1000");
  EXPECT_EQ(faultWith("\"latency_ns\":3", "\"latency_ns\":1000000000001"),
            "/links/d2h/latency_ns: found 1000000000001, expected a whole number from 0 to "
            "1000000000000");
  EXPECT_EQ(faultWith("\"bf16\":6", "\"bf16\":0"),
            "/flops_per_s/bf16: found 0, expected a whole number from 1 to 9223372036854775807");
  EXPECT_NE(faultWith("\"kernel_overhead_ns\":", "\"kernel_overhead_ns\":9000000000000"), "");
  EXPECT_EQ(faultWith("\"bf16\"", "\"bf61\""),
            "/flops_per_s/bf61: found dtype 'bf61', expected one such as bf16 or f32");
}

}  // namespace
}  // namespace stowage::planner
