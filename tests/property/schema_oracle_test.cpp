// SPDX-License-Identifier: Apache-2.0
//
// Our reading of the published schemas against an independent validator (Python's jsonschema).
// Documents with a member removed, added or replaced must get the same verdict from both.

#include <gtest/gtest.h>
#include <llvm/Support/raw_ostream.h>

#include <checkout_folders.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "planner/files/cost_json.h"
#include "planner/files/schema_json.h"
#include "planner/files/schema_texts.h"
#include "tests/support/random.h"
#include "tests/support/sample_plan.h"

namespace stowage::tests {
namespace {

using planner::Json;

constexpr uint64_t kSeed = 20261125;
constexpr int kMutantsPerSchema = 3000;

Json parsed(const std::string& text) {
  Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(document.is_discarded());
  return document;
}

Json makeCosts() {
  planner::CostFile costs{.stowageVersion = "0.1.0", .torchVersion = "2.11.0", .table = {}};
  costs.table.device = "a device";
  costs.table.outside = Bytes(750);
  ir::OpCost cost;
  cost.allocations = 2;
  cost.resultOrdinals = {0, 1};
  costs.table.bySignature["aten.mm.default(%0:f32[4,4])->(%1:f32[4,4])"] = cost;
  std::string text;
  llvm::raw_string_ostream os(text);
  EXPECT_EQ(ir::describe(writeCosts(costs, os)), "");
  return parsed(os.str());
}

/// Every value of the document that holds others.
void collect(Json& value, std::vector<Json*>& found) {
  if (!value.is_structured()) return;
  if (!value.empty()) found.push_back(&value);
  for (Json& part : value) collect(part, found);
}

Json randomValue(Random& random) {
  static const std::vector<Json> kValues = {nullptr,
                                            true,
                                            0,
                                            -1,
                                            7,
                                            1'000'000'000'001,
                                            1.5,
                                            "",
                                            "keep",
                                            "run",
                                            Json::object(),
                                            "copy",
                                            "host",
                                            Json::array(),
                                            Json::array({1, 2}),
                                            99};
  return random.pick(kValues);
}

void mutate(Json& document, Random& random) {
  std::vector<Json*> places;
  collect(document, places);
  Json& place = *random.pick(places);
  auto member = place.begin();
  std::advance(member, random.between(0, static_cast<int64_t>(place.size()) - 1));
  switch (random.between(0, 3)) {
    case 0:
      place.erase(member);
      return;
    case 1:
      if (place.is_object()) {
        place["further"] = randomValue(random);
      } else {
        place.push_back(Json(*member));
      }
      return;
    default:
      *member = randomValue(random);
  }
}

/// Appends lines {"schema", "valid", "document"}; what both validators are asked.
void writeCases(const std::string& schema, const char* text, const Json& sample,
                std::ofstream& out) {
  const planner::SchemaChecker checker(text, "", planner::UnknownMembers::kRefused);
  EXPECT_FALSE(checker.check(sample, "")) << checker.check(sample, "")->message;
  Random random(kSeed);
  int refused = 0;
  for (int i = 0; i < kMutantsPerSchema; ++i) {
    Json mutant = sample;
    for (int64_t changes = random.between(1, 2); changes > 0; --changes) mutate(mutant, random);
    const bool isValid = !checker.check(mutant, "");
    refused += isValid ? 0 : 1;
    out << Json{{"schema", schema}, {"valid", isValid}, {"document", std::move(mutant)}}.dump()
        << '\n';
  }
  EXPECT_GT(refused, kMutantsPerSchema / 4);
  EXPECT_LT(refused, kMutantsPerSchema);
}

TEST(SchemaOracle, AnIndependentValidatorAgrees) {
  const std::string python = STOWAGE_JSONSCHEMA_PYTHON;
  if (python.empty()) GTEST_SKIP() << "no python3 with jsonschema";
  const std::string path = testing::TempDir() + "/schema_cases.jsonl";
  {
    std::ofstream out(path);
    writeCases("plan", planner::kPlanSchema, parsed(writeToText(makeSamplePlan())), out);
    writeCases("costs", planner::kCostsSchema, makeCosts(), out);
  }
  const std::string command =
      python + " " STOWAGE_SOURCE_DIR "/tests/property/schema_oracle.py " + path;
  EXPECT_EQ(std::system(command.c_str()), 0) << "the cases are in " << path;
}

}  // namespace
}  // namespace stowage::tests
