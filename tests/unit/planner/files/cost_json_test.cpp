// SPDX-License-Identifier: Apache-2.0

#include "planner/files/cost_json.h"

#include <gtest/gtest.h>
#include <llvm/Support/raw_ostream.h>

#include <string>

namespace stowage::planner {
namespace {

CostFile makeSample() {
  CostFile costs{.stowageVersion = "0.1.0", .torchVersion = "2.11.0", .table = {}};
  costs.table.source = ir::CostSource::kMeasured;
  costs.table.device = "a \"device\"";
  costs.table.links.deviceToHost.bandwidth = BytesPerSecond(24'000'000'000);
  costs.table.links.hostToDevice = {.bandwidth = BytesPerSecond(25'000'000'000),
                                    .latency = Nanoseconds(9000)};
  costs.table.outside = Bytes(750'000'000);
  costs.table.scalars = Nanoseconds(6'500'000);
  ir::OpCost measured;
  measured.work = Nanoseconds(1234);
  measured.launch = Nanoseconds(77);
  measured.temporary = Bytes(512);
  measured.allocations = 3;
  measured.resultOrdinals = {1, 2};
  measured.source = ir::CostSource::kMeasured;
  costs.table.bySignature["aten.mm.default(%0:f32[4,4])->(%1:f32[4,4])"] = measured;
  ir::OpCost estimated;
  estimated.work = Nanoseconds(1);
  estimated.source = ir::CostSource::kRoofline;
  costs.table.bySignature["aten.add.Tensor()->()"] = estimated;
  return costs;
}

std::string writeToText(const CostFile& costs) {
  std::string text;
  llvm::raw_string_ostream os(text);
  EXPECT_EQ(ir::describe(writeCosts(costs, os)), "");
  return os.str();
}

std::string readingError(const std::string& from, const std::string& to) {
  std::string text = writeToText(makeSample());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  ir::Expected<CostFile> costs = readCosts(text, "costs.json");
  return costs ? "" : ir::describe(costs.takeError());
}

TEST(CostJson, EveryFieldIsReadBack) {
  const std::string text = writeToText(makeSample());
  ir::Expected<CostFile> costs = readCosts(text);
  ASSERT_TRUE(static_cast<bool>(costs)) << ir::describe(costs.takeError());
  EXPECT_EQ(writeToText(*costs), text);
  EXPECT_EQ(costs->torchVersion, "2.11.0");
  EXPECT_EQ(costs->table.source, ir::CostSource::kMeasured);
  EXPECT_EQ(costs->table.device, "a \"device\"");
  EXPECT_EQ(costs->table.links.hostToDevice.latency, Nanoseconds(9000));
  EXPECT_EQ(costs->table.outside, Bytes(750'000'000));
  EXPECT_EQ(costs->table.scalars, Nanoseconds(6'500'000));
  ASSERT_EQ(costs->table.bySignature.size(), 2U);
  const ir::OpCost& row = costs->table.bySignature.rbegin()->second;
  EXPECT_EQ(row.work, Nanoseconds(1234));
  EXPECT_EQ(row.launch, Nanoseconds(77));
  EXPECT_EQ(row.temporary, Bytes(512));
  EXPECT_EQ(row.allocations, 3);
  EXPECT_EQ(row.resultOrdinals, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(row.source, ir::CostSource::kMeasured);
  EXPECT_EQ(costs->table.bySignature.begin()->second.allocations, -1);
  EXPECT_EQ(costs->table.bySignature.begin()->second.launch, Nanoseconds(0));
}

TEST(CostJson, TheFingerprintCoversTheTableAndNotItsWriter) {
  CostFile costs = makeSample();
  const std::string fingerprint = costsFingerprint(costs.table);
  EXPECT_EQ(fingerprint.size(), std::string("xxh3:0123456789abcdef").size());
  EXPECT_EQ(costsFingerprint(makeSample().table), fingerprint);
  costs.table.bySignature.begin()->second.temporary = Bytes(1);
  EXPECT_NE(costsFingerprint(costs.table), fingerprint);
}

TEST(CostJson, BrokenTablesAreRefusedWithThePlace) {
  EXPECT_EQ(readingError("\"work_ns\":1234", "\"work_ns\":-1"),
            "costs.json:7: at /ops/1/work_ns: found -1, expected a whole number from 0 to "
            "1000000000000");
  EXPECT_EQ(
      readingError("\"work_ns\":1234", "\"work_ns\":4611686018427387904"),
      "costs.json:7: at /ops/1/work_ns: found 4611686018427387904, expected a whole number from 0 "
      "to 1000000000000");
  EXPECT_EQ(readingError("\"temp_bytes\":512", "\"temp_bytes\":4611686018427387904"),
            "costs.json:7: at /ops/1/temp_bytes: found 4611686018427387904, expected a whole "
            "number from 0 to 1125899906842624");
  EXPECT_EQ(readingError("\"results\":[1,2]", "\"results\":[1,\"2\"]"),
            "costs.json:7: at /ops/1/results/1: found \"2\", expected a whole number from 0 to "
            "2147483647");
  EXPECT_EQ(
      readingError("\"source\":\"roofline\"", "\"source\":\"guess\""),
      "costs.json:6: at /ops/0/source: found \"guess\", expected measured, roofline or given");
  EXPECT_EQ(readingError("\"latency_ns\":9000", "\"latency_ns\":null"),
            "costs.json: at /links/h2d/latency_ns: found null, expected a whole number from 0 to "
            "1000000000000");
  EXPECT_EQ(readingError("\"kind\":\"costs\"", "\"kind\":\"plan\""),
            "costs.json: at /kind: found 'plan', expected 'costs'");
  EXPECT_EQ(readingError("aten.add.Tensor()->()", "aten.mm.default(%0:f32[4,4])->(%1:f32[4,4])"),
            "costs.json:7: at /ops/1/signature: found a second row for this signature, expected "
            "one");
  const std::string unknown = readingError("\"temp_bytes\":512", "\"temp_bytes\":512,\"x\":1");
  EXPECT_NE(unknown.find("at /ops/1"), std::string::npos) << unknown;
}

}  // namespace
}  // namespace stowage::planner
