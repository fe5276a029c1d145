// SPDX-License-Identifier: Apache-2.0
//
// The plan file: what is written is read back, and what somebody broke is refused with the place.

#include "planner/files/plan_json.h"

#include <gtest/gtest.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/files/schema_words_json.h"
#include "tests/support/sample_plan.h"

namespace stowage::planner {
namespace {

using tests::makeSamplePlan;
using tests::writeToText;

/// `text` with the first `from` replaced; fails the test if there is none.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "no '" << from << "' in the plan";
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string readingError(const std::string& text) {
  ir::Expected<PlanFile> plan = readPlan(text, "plan.json");
  return plan ? "" : ir::describe(plan.takeError());
}

PlanFile readBack(const std::string& text) {
  ir::Expected<PlanFile> plan = readPlan(text, "plan.json");
  if (plan) return std::move(*plan);
  ADD_FAILURE() << ir::describe(plan.takeError());
  return {};
}

TEST(PlanJson, EveryFieldIsReadBack) {
  const PlanFile plan = makeSamplePlan();
  const PlanFile again = readBack(writeToText(plan));
  EXPECT_EQ(again.stowageVersion, plan.stowageVersion);
  EXPECT_EQ(again.torchVersion, plan.torchVersion);
  EXPECT_EQ(again.graph.fingerprint, plan.graph.fingerprint);
  EXPECT_EQ(again.graph.nodes, 3);
  EXPECT_EQ(again.graph.storages, 4);
  EXPECT_EQ(again.graph.stepsCaptured, 4);
  EXPECT_EQ(again.graph.file, plan.graph.file);
  EXPECT_EQ(again.graph.text, plan.graph.text);
  EXPECT_EQ(again.costs.fingerprint, plan.costs.fingerprint);
  EXPECT_EQ(again.costs.source, plan.costs.source);
  EXPECT_EQ(again.costs.file, plan.costs.file);
  EXPECT_EQ(again.budget, plan.budget);
  EXPECT_EQ(again.prefetchLimit, plan.prefetchLimit);
  EXPECT_EQ(again.schedule, plan.schedule);
  EXPECT_EQ(again.labels[1].name, "a \"quoted\" name");
  EXPECT_EQ(again.labels[1].bytes, Bytes(16));
  EXPECT_EQ(again.stalls.disk, Nanoseconds(3));
  EXPECT_EQ(again.stalls.ranks, Nanoseconds(4));
}

TEST(PlanJson, TheTargetIsReadBackWhole) {
  const ir::Target target = makeSamplePlan().target;
  const ir::Target again = readBack(writeToText(makeSamplePlan())).target;
  EXPECT_EQ(again.profile, target.profile);
  EXPECT_EQ(again.device, target.device);
  EXPECT_EQ(again.alignBytes, target.alignBytes);
  EXPECT_EQ(again.intraOpThreads, target.intraOpThreads);
  EXPECT_EQ(again.deterministic, target.deterministic);
  EXPECT_EQ(again.libraries, target.libraries);
  EXPECT_EQ(again.reserved, target.reserved);
  EXPECT_EQ(again.memory, target.memory);
  EXPECT_EQ(again.outside, target.outside);
  EXPECT_EQ(again.memoryBandwidth, target.memoryBandwidth);
  EXPECT_EQ(again.kernelOverhead, target.kernelOverhead);
  EXPECT_EQ(again.flopsPerSecond.size(), 2U);
  EXPECT_EQ(again.links.deviceToHost.bandwidth, target.links.deviceToHost.bandwidth);
  EXPECT_EQ(again.links.deviceToHost.latency, target.links.deviceToHost.latency);
  EXPECT_EQ(again.links.bothPermille, target.links.bothPermille);
  EXPECT_EQ(again.computeCapability, target.computeCapability);
  EXPECT_EQ(again.cudnnVersion, target.cudnnVersion);
}

TEST(PlanJson, WhatWasReadIsWrittenWithTheSameBytes) {
  const std::string text = writeToText(makeSamplePlan());
  EXPECT_EQ(writeToText(readBack(text)), text);
}

TEST(PlanJson, TheHostLimitIsReadBackAndAbsentWithoutOne) {
  PlanFile plan = makeSamplePlan();
  const std::string unlimited = writeToText(plan);
  EXPECT_EQ(unlimited.find("\"limit_bytes\""), std::string::npos);
  EXPECT_EQ(readBack(unlimited).hostLimit, std::nullopt);
  for (const bool hasArena : {true, false}) {
    plan.hostLimit = Bytes(hasArena ? 1536 : 0);
    if (!hasArena) plan.schedule.arenas.erase(plan.schedule.arenas.begin() + 1);
    const std::string text = writeToText(plan);
    const PlanFile again = readBack(text);
    EXPECT_EQ(again.hostLimit, plan.hostLimit);
    EXPECT_EQ(again.schedule, plan.schedule);
    EXPECT_EQ(writeToText(again), text);
  }
}

TEST(PlanJson, RowBlocksAreReadBackAndLeftOutWhenThereAreNone) {
  planner::PlanFile plan = makeSamplePlan();
  EXPECT_EQ(writeToText(plan).find("row_blocks"), std::string::npos);
  plan.graph.rowBlocks = 16;
  const std::string text = writeToText(plan);
  EXPECT_NE(text.find("\"row_blocks\":16"), std::string::npos);
  EXPECT_EQ(readBack(text).graph.rowBlocks, 16);
}

TEST(PlanJson, UpdatesOnTheHostAreReadBackAndLeftOutWhenThereAreNone) {
  planner::PlanFile plan = makeSamplePlan();
  EXPECT_EQ(writeToText(plan).find("host_updates"), std::string::npos);
  plan.graph.hostUpdates = 25;
  const std::string text = writeToText(plan);
  EXPECT_NE(text.find("\"host_updates\":25"), std::string::npos);
  EXPECT_EQ(readBack(text).graph.hostUpdates, 25);
}

TEST(PlanJson, TenRunsGiveTheSameBytes) {
  const std::string text = writeToText(makeSamplePlan());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(writeToText(makeSamplePlan()), text);
}

TEST(PlanJson, WritesOneCommandPerLineInThePublishedForm) {
  const std::string text = writeToText(makeSamplePlan());
  const size_t begin = text.find("\"commands\"");
  EXPECT_EQ(text.substr(begin),
            "\"commands\":[\n"
            "{\"op\":\"copy\",\"stream\":2,\"from\":0,\"to\":1,\"prev\":[3,5]},\n"
            "{\"op\":\"run\",\"node\":0,\"stream\":0,\"in\":[1,2],\"out\":[3],\"temp\":[2048,100],"
            "\"rng\":0,\"wait\":[0]},\n"
            "{\"op\":\"run\",\"node\":0,\"recompute\":1,\"stream\":0,\"in\":[1,2],\"out\":[3],"
            "\"rng\":0},\n"
            "{\"op\":\"run\",\"node\":1,\"stream\":0,\"in\":[3,2],\"out\":[5],\"takes\":3},\n"
            "{\"op\":\"run\",\"node\":2,\"stream\":5,\"in\":[2,5],\"out\":[2]},\n"
            "{\"op\":\"copy\",\"stream\":1,\"from\":2,\"to\":4,\"wait\":[2,4]}]\n"
            "}\n");
}

TEST(PlanJson, EditedDecisionsAreWhatIsRead) {
  const std::string text = writeToText(makeSamplePlan());
  const PlanFile plan = readBack(replaced(text, "\"action\":\"recompute\",\"pinned\":false",
                                          "\"action\":\"keep\",\"pinned\":true"));
  EXPECT_EQ(plan.schedule.decisions[1].action, ir::GapAction::kKeep);
  EXPECT_TRUE(plan.schedule.decisions[1].pinned);
}

TEST(PlanJson, DecisionsMayComeInAnyOrder) {
  const std::string row =
      "{\"storage\":0,\"name\":\"x\",\"gap\":[0,4],\"action\":\"host\",\"pinned\":true,"
      "\"bytes\":16,\"why\":\"mine\"}";
  const std::string text = writeToText(makeSamplePlan());
  const PlanFile plan = readBack(replaced(text, "\"why\":\"\"}]", "\"why\":\"\"},\n" + row + "]"));
  ASSERT_EQ(plan.schedule.decisions.size(), 4U);
  EXPECT_EQ(plan.schedule.decisions[0].why, "mine");
  EXPECT_EQ(plan.labels[0].name, "x");
}

TEST(PlanJson, AReasonIsAWordOfThePlannersUnlessTheRowIsPinned) {
  const std::string text = writeToText(makeSamplePlan());
  const std::string place = "\"why\":\"\"}]";
  for (const char* word : {"pinned", "hidden", "waits", "cheap", "busy", "only"}) {
    EXPECT_EQ(readBack(replaced(text, place, std::string("\"why\":\"") + word + "\"}]"))
                  .schedule.decisions.back()
                  .why,
              word);
  }
  const std::string error = readingError(replaced(text, place, "\"why\":\"because\"}]"));
  EXPECT_NE(
      error.find("/why: found \"because\", expected pinned, hidden, waits, cheap, busy, only or "
                 "nothing"),
      std::string::npos)
      << error;
}

TEST(PlanJson, AnotherMajorVersionIsRefused) {
  const std::string text = writeToText(makeSamplePlan());
  EXPECT_EQ(
      readingError(replaced(text, "\"schema_version\":\"1.0\"", "\"schema_version\":\"2.0\"")),
      "plan.json: at /schema_version: found '2.0', expected '1.0' or another minor version "
      "of it");
  EXPECT_EQ(readingError(replaced(text, "\"kind\":\"plan\"", "\"kind\":\"costs\"")),
            "plan.json: at /kind: found 'costs', expected 'plan'");
}

TEST(PlanJson, ANewerMinorVersionMayHaveMembersThatWeDoNotKnow) {
  std::string text = writeToText(makeSamplePlan());
  text = replaced(text, "\"takes\":3", "\"takes\":3,\"colour\":\"red\"");
  EXPECT_NE(readingError(text).find("plan.json:"), std::string::npos);
  text = replaced(text, "\"schema_version\":\"1.0\"", "\"schema_version\":\"1.7\"");
  EXPECT_EQ(readBack(text).schedule, makeSamplePlan().schedule);
}

TEST(PlanJson, KeepsTheNumberOfRanks) {
  PlanFile plan = makeSamplePlan();
  plan.stalls.ranks = Nanoseconds(0);
  EXPECT_EQ(writeToText(plan).find("\"ranks\""), std::string::npos);
  plan.graph.ranks = 3;
  const std::string text = writeToText(plan);
  EXPECT_NE(text.find("\"ranks\":3"), std::string::npos) << text;
  EXPECT_EQ(readBack(text).graph.ranks, 3);
}

TEST(PlanJson, AMisspeltMemberIsAnError) {
  const std::string text = writeToText(makeSamplePlan());
  const std::string error = readingError(replaced(text, "\"takes\":3", "\"takse\":3"));
  EXPECT_NE(error.find("at /commands/3"), std::string::npos) << error;
  EXPECT_NE(error.find("takse"), std::string::npos) << error;
}

struct BrokenPlan {
  const char* from;
  const char* to;
  const char* error;  // a part of it
};

class PlanJsonBroken : public testing::TestWithParam<BrokenPlan> {};

TEST_P(PlanJsonBroken, SaysWhereWhatWasFoundAndWhatWasExpected) {
  const std::string text = replaced(writeToText(makeSamplePlan()), GetParam().from, GetParam().to);
  const std::string error = readingError(text);
  EXPECT_NE(error.find(GetParam().error), std::string::npos)
      << "found: " << error << "\nexpected in it: " << GetParam().error;
  EXPECT_EQ(error.rfind("plan.json:", 0), 0U) << error;
}

INSTANTIATE_TEST_SUITE_P(
    PlanJson, PlanJsonBroken,
    testing::Values(
        BrokenPlan{"\"stream\":5", "\"stream\":7",
                   "at /commands/4/stream: found 7, expected a whole number from 0 to 6"},
        BrokenPlan{"\"in\":[3,2]", "\"in\":[3,-2]", "at /commands/3/in/1: found -2, expected"},
        BrokenPlan{"\"in\":[3,2]", "\"in\":[3,2.0]", "at /commands/3/in/1: found 2.0, expected"},
        BrokenPlan{"\"in\":[3,2]", "\"in\":[3,99999999999999999999]",
                   "at /commands/3/in/1: found 1e+20, expected"},
        BrokenPlan{"\"in\":[3,2]", "\"in\":[3,7]",
                   "at /commands/3/in/1: found 7, expected an id below 7"},
        BrokenPlan{"\"in\":[3,2]", "\"in\":{\"3\":2}",
                   "at /commands/3/in: found an object, expected an array"},
        BrokenPlan{"\"node\":1", "\"node\":3",
                   "at /commands/3/node: found 3, expected an id below 3"},
        BrokenPlan{"\"wait\":[2,4]", "\"wait\":[2,6]",
                   "at /commands/5/wait/1: found 6, expected an id below 6"},
        BrokenPlan{"\"op\":\"copy\"", "\"op\":\"move\"",
                   "at /commands/0/op: found \"move\", expected run or copy"},
        BrokenPlan{",\"from\":0", "",
                   "at /commands/0/from: found nothing, expected it to be there"},
        BrokenPlan{"\"op\":\"copy\",\"stream\":2", "\"op\":\"copy\",\"stream\":2,\"node\":1",
                   "at /commands/0/node: found 1, expected no such member in a copy command"},
        BrokenPlan{"[2,1,\"device\",0]", "[3,1,\"device\",0]",
                   "at /residencies/2/0: found 3, expected a whole number from 2 to 2"},
        BrokenPlan{"[2,1,\"device\",0]", "[2,1,\"moon\",0]",
                   "at /residencies/2/2: found \"moon\", expected device, host or disk"},
        BrokenPlan{"[2,1,\"device\",0]", "[2,1,\"device\",-512]",
                   "at /residencies/2/3: found -512"},
        BrokenPlan{"[2,1,\"device\",0]", "[2,4,\"device\",0]",
                   "at /residencies/2/1: found 4, expected an id below 4"},
        BrokenPlan{
            "[2,1,\"device\",0]", "[2,1,\"device\"]",
            "at /residencies/2: found an array of 3, expected id, storage, space and offset"},
        BrokenPlan{"\"dirty\":true", "\"dirty\":1", "at /boundary/1/dirty: found 1, expected true"},
        BrokenPlan{
            "\"action\":\"host\"", "\"action\":\"hosts\"",
            "at /decisions/0/action: found \"hosts\", expected keep, host, disk or recompute"},
        BrokenPlan{"\"gap\":[1,2]", "\"gap\":[0,2]", "found two rows for storage 2"},
        BrokenPlan{"\"align_bytes\":512", "\"align_bytes\":500",
                   "at /target/align_bytes: found 500, expected a power of two"},
        BrokenPlan{"\"intra_op_threads\":2", "\"intra_op_threads\":3",
                   "at /target/fingerprint: found xxh3:"},
        BrokenPlan{"\"bf16\":", "\"b16\":", "found dtype 'b16'"},
        BrokenPlan{"\"bytes_per_s\":55000000000", "\"bytes_per_s\":0",
                   "at /target/links/d2h/bytes_per_s: found 0, expected a whole number from 1"},
        BrokenPlan{"\"peak_bytes\":2148", "\"peak_bytes\":\"2148\"",
                   "at /predicted/peak_bytes: found \"2148\", expected a whole number"},
        BrokenPlan{"\"boundary\":\"flowing\"", "\"boundary\":\"flow\"",
                   "at /mode/boundary: found \"flow\", expected flowing or joined"},
        BrokenPlan{"\"budget_bytes\":4096,", "",
                   "at /budget_bytes: found nothing, expected it to be there"},
        BrokenPlan{"\"budget_bytes\":4096", "\"budget_bytes\":0",
                   "at /budget_bytes: found 0, expected a whole number from 1"},
        BrokenPlan{"\"nodes\":3", "\"nodes\":3,\"nodes\":3", "found key 'nodes' twice"},
        BrokenPlan{"\"nodes\":3", "\"nodes\":[[[[[[[[[[[[[[[[[[3]]]]]]]]]]]]]]]]]]",
                   "nested deeper than 16"},
        BrokenPlan{"\"dirty\":false", "\"dirty\":fals", "syntax error"},
        BrokenPlan{"\"takes\":3", "\"takes\":3,\"colour\":\"red\"",
                   "at /commands/3/colour: found \"red\", expected no such member: there are from, "
                   "in, node, op"},
        BrokenPlan{"\"nodes\":3", "\"nodes\":3,\"colour\":{}",
                   "at /graph/colour: found an object, expected no such member: there are file, "
                   "fingerprint, host_updates, nodes, ranks, row_blocks, steps_captured, storages, "
                   "text"},
        BrokenPlan{"\"nodes\":3", "\"nodes\":3,\"ranks\":1", "at /graph/ranks: found 1, expected"},
        BrokenPlan{"\"bound_scope\":\"program,hoisted\"", "\"bound_scope\":\"\"",
                   "at /predicted/bound_scope: found \"\", expected a string that is not empty"},
        BrokenPlan{"\"why\":\"pinned\"", "\"why\":\"pin\xff\"", "invalid"}));

TEST(PlanJson, ErrorsInLongArraysNameTheLine) {
  const std::string text = writeToText(makeSamplePlan());
  const std::string broken = replaced(text, "\"takes\":3", "\"takes\":-3");
  const auto line =
      1 + std::count(broken.begin(), broken.begin() + static_cast<long>(broken.find("\"takes\"")),
                     '\n');
  EXPECT_EQ(
      readingError(broken).rfind("plan.json:" + std::to_string(line) + ": at /commands/3/takes", 0),
      0U)
      << readingError(broken);
}

TEST(PlanJson, EveryTruncationIsAnErrorWithAPlace) {
  const std::string text = writeToText(makeSamplePlan());
  // The last byte is the line break after the closing brace.
  for (size_t length = 0; length + 1 < text.size(); ++length) {
    const std::string error = readingError(text.substr(0, length));
    ASSERT_EQ(error.rfind("plan.json:", 0), 0U) << "length " << length << ": " << error;
  }
}

TEST(PlanJson, OnlyACompleteScheduleIsWritten) {
  PlanFile plan = makeSamplePlan();
  plan.schedule.level = ir::Level::kPlaced;
  std::string text;
  llvm::raw_string_ostream os(text);
  EXPECT_EQ(ir::describe(writePlan(plan, os)),
            "found a schedule at level placed, expected a plan file's to be at level synced");
}

TEST(PlanJson, NamesMustBeText) {
  PlanFile plan = makeSamplePlan();
  plan.labels[0].name = "\xff";
  std::string text;
  llvm::raw_string_ostream os(text);
  EXPECT_EQ(ir::describe(writePlan(plan, os)), "found a name that is not UTF-8, expected text");
}

TEST(PlanJson, ADecisionWhoseBytesAreNotTheStoragesIsRefusedAtItsPlace) {
  // The rows of a file that a person sorted anew: the place is that of the file.
  std::string text = writeToText(makeSamplePlan());
  const size_t begin = text.find("{\"storage\"");
  const size_t second = text.find("{\"storage\"", begin + 1);
  const std::string row = text.substr(begin, text.find('}', begin) + 1 - begin);
  const std::string other = text.substr(second, text.find('}', second) + 1 - second);
  text.replace(second, other.size(), row).replace(begin, row.size(), other);
  const PlanFile plan = readBack(text);
  EXPECT_EQ(ir::describe(checkPlanGraph(plan, tests::makeSampleGraph())), "");
  const size_t bytes = text.find("\"bytes\":", text.find(row));
  const PlanFile wrong = readBack(text.insert(bytes + 8, "9"));
  const std::string error = ir::describe(checkPlanGraph(wrong, tests::makeSampleGraph()));
  EXPECT_EQ(error.find("plan.json: at /decisions/1/bytes: found 9"), 0U) << error;
  EXPECT_NE(error.find(", expected the size of storage "), std::string::npos) << error;
}

TEST(SchemaWords, SayWhichOfTheSchemasWordsIsBroken) {
  const Json schema = Json::parse(R"js({
    "type": "object",
    "required": ["kind"],
    "properties": {
      "kind": {"enum": ["a", "b"]},
      "pair": {"type": "array", "items": [{"$ref": "#/definitions/n"}, {"type": "string"}],
               "additionalItems": false, "minItems": 2},
      "list": {"type": "array", "items": {"$ref": "#/definitions/n"}, "maxItems": 2},
      "only": {"type": "boolean"}
    },
    "additionalProperties": false,
    "if": {"properties": {"kind": {"const": "a"}}},
    "then": {"properties": {"only": false}},
    "else": {"required": ["list"]},
    "definitions": {"n": {"type": "integer", "minimum": 1, "maximum": 9}}
  })js");
  const auto faultOf = [&](const char* text) {
    const std::optional<JsonFault> fault = findSchemaFault(schema, Json::parse(text), "/x");
    return fault ? fault->pointer + ": " + fault->message : "";
  };
  EXPECT_EQ(faultOf(R"({"kind": "a", "pair": [9, ""], "list": []})"), "");
  EXPECT_EQ(faultOf("3"), "/x: found 3, expected an object");
  EXPECT_EQ(faultOf(R"({"list": []})"), "/x/kind: found nothing, expected one of a, b");
  EXPECT_EQ(faultOf(R"({"kind": "a", "only": true})"),
            "/x/only: found true, expected no such member");
  EXPECT_EQ(faultOf(R"({"kind": "b"})"), "/x/list: found nothing, expected it to be there");
  EXPECT_EQ(faultOf(R"({"kind": "a", "pair": [9]})"),
            "/x/pair: found an array of 1, expected one of 2 elements");
  EXPECT_EQ(faultOf(R"({"kind": "a", "list": [1, 2, 3]})"),
            "/x/list: found an array of 3, expected one of 2 elements");
  EXPECT_EQ(faultOf(R"({"kind": "a", "pair": [9, 9]})"), "/x/pair/1: found 9, expected a string");
  EXPECT_EQ(faultOf(R"({"kind": "a", "list": [1, 10]})"),
            "/x/list/1: found 10, expected a whole number from 1 to 9");
  EXPECT_EQ(faultOf(R"({"kind": "a", "list": [1.5]})"),
            "/x/list/0: found 1.5, expected a whole number from 1 to 9");
}

}  // namespace
}  // namespace stowage::planner
