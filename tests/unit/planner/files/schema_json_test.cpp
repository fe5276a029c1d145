// SPDX-License-Identifier: Apache-2.0
//
// Values against the published schemas: the decision of the worked step, and faults in words.
#include "planner/files/schema_json.h"

#include <gtest/gtest.h>

#include "planner/files/schema_texts.h"

namespace stowage::planner {
namespace {

std::string faultOf(const SchemaChecker& checker, const Json& value) {
  const std::optional<JsonFault> fault = checker.check(value, "/decisions/0");
  return fault ? fault->pointer + ": " + fault->message : "";
}

/// The row of planner/README.md.
Json makeDecision() {
  return {{"storage", 0},    {"name", "a"},  {"gap", {1, 4}},  {"action", "host"},
          {"pinned", false}, {"bytes", 512}, {"why", "hidden"}};
}

TEST(SchemaJson, TheDecisionOfTheWorkedStep) {
  const SchemaChecker checker(kPlanSchema, "decision", UnknownMembers::kRefused);
  EXPECT_EQ(faultOf(checker, makeDecision()), "");
  Json decision = makeDecision();
  decision["action"] = "hosst";
  EXPECT_EQ(faultOf(checker, decision),
            "/decisions/0/action: found \"hosst\", expected one of keep, host, disk, recompute");
  decision = makeDecision();
  decision["gap"] = {1, 4, 5};
  EXPECT_EQ(faultOf(checker, decision),
            "/decisions/0/gap: found an array of 3, expected one of 2 elements");
  decision = makeDecision();
  decision.erase("name");
  EXPECT_EQ(faultOf(checker, decision), "/decisions/0/name: found nothing, expected a string");
}

TEST(SchemaJson, UnknownMembersAreRefusedOrIgnored) {
  Json decision = makeDecision();
  decision["colour"] = 1;
  const SchemaChecker strict(kPlanSchema, "decision", UnknownMembers::kRefused);
  const SchemaChecker lenient(kPlanSchema, "decision", UnknownMembers::kIgnored);
  EXPECT_EQ(faultOf(strict, decision),
            "/decisions/0/colour: found 1, expected no such member: there are action, bytes, gap, "
            "name, pinned, storage, why");
  EXPECT_EQ(faultOf(lenient, decision), "");
  decision["bytes"] = "512";
  EXPECT_NE(faultOf(lenient, decision), "") << "what is known is still checked";
}

// "" is the whole schema; a reference leads to a definition of it.
TEST(SchemaJson, AWholeSchemaOrADefinitionOfIt) {
  const char* schema = R"({"type": "object", "properties": {"n": {"$ref": "#/definitions/few"}},
                           "definitions": {"few": {"type": "integer", "maximum": 3}}})";
  const SchemaChecker whole(schema, "", UnknownMembers::kRefused);
  EXPECT_EQ(faultOf(whole, {{"n", 3}}), "");
  EXPECT_EQ(faultOf(whole, {{"n", 4}}), "/decisions/0/n: found 4, expected a whole number to 3");
  const SchemaChecker few(schema, "few", UnknownMembers::kRefused);
  EXPECT_EQ(faultOf(few, 3), "");
  EXPECT_EQ(faultOf(few, 4), "/decisions/0: found 4, expected a whole number to 3");
}

}  // namespace
}  // namespace stowage::planner
