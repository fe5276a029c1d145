// SPDX-License-Identifier: Apache-2.0
//
// A text as values: long arrays of the top level come element by element, the rest in one tree.
// What is no plain JSON object ends with a fault.
#include "planner/files/event_json.h"

#include <gtest/gtest.h>

namespace stowage::planner {
namespace {

/// What a reader is told, one text per event, and what is left. "ops" is the long array.
struct Events {
  ParsedJson parsed;
  std::vector<std::string> told;
};
Events read(const std::string& text, const std::string& stopAt = "") {
  Events events;
  const auto tell = [&](const std::string& what) {
    events.told.push_back(what);
    return what != stopAt;
  };
  const auto onElement = [&](const std::string& key, size_t index, const Json& element) {
    return tell(key + "/" + std::to_string(index) + " " + element.dump());
  };
  const auto onText = [&](const std::string& key, const std::string& value) {
    return tell(key + "=" + value);
  };
  events.parsed = parseJson(text, {.isLong = [](const std::string& key) { return key == "ops"; },
                                   .onElement = onElement,
                                   .onText = onText});
  return events;
}
std::string faultOf(const std::string& text) {
  const ParsedJson parsed = read(text).parsed;
  return parsed.fault ? parsed.fault->message : "";
}

// Only strings of the top level are told by themselves, and only arrays of the top level are long.
TEST(EventJson, LongArraysComeByElementAndTheRestAsATree) {
  const Events events = read(R"({"kind":"costs","ops":[1,"b",[2,3],{"ops":[4]}],)"
                             R"("links":{"kind":"x","ops":[5]},"few":[6]})");
  EXPECT_EQ(events.told, (std::vector<std::string>{"kind=costs", "ops/0 1", "ops/1 \"b\"",
                                                   "ops/2 [2,3]", "ops/3 {\"ops\":[4]}"}));
  EXPECT_FALSE(events.parsed.fault);
  EXPECT_FALSE(events.parsed.stopped);
  EXPECT_EQ(events.parsed.header.dump(),
            R"({"few":[6],"kind":"costs","links":{"kind":"x","ops":[5]},"ops":[]})");
}

TEST(EventJson, AVisitorStopsTheReadingAtItsPlace) {
  const std::string text = "{\"ops\":[1,\n2,\n3,\n4]}";
  const Events events = read(text, "ops/1 2");
  EXPECT_TRUE(events.parsed.stopped);
  EXPECT_FALSE(events.parsed.fault);
  EXPECT_EQ(events.told.size(), 2U);
  EXPECT_GE(events.parsed.position, text.find('2') + 1);
  EXPECT_LT(events.parsed.position, text.find('3'));
}

TEST(EventJson, WhatIsNoPlainObjectIsAFault) {
  EXPECT_EQ(faultOf("[1]"), "found an array, expected an object");
  EXPECT_EQ(faultOf("17"), "found 17, expected an object");
  EXPECT_EQ(faultOf(R"({"a":1,"a":2})"), "found key 'a' twice, expected it once");
  EXPECT_EQ(faultOf(R"({"ops":[{"b":1,"b":2}]})"), "found key 'b' twice, expected it once");
  EXPECT_EQ(faultOf(R"({"ops":[],"ops":[]})"), "found key 'ops' twice, expected it once");
  for (const char* broken : {"", "{", "{\"a\":1", "{\"a\":1}}", "{\"a\":1,}", "{'a':1}"}) {
    EXPECT_NE(faultOf(broken), "") << broken;
  }
}

// The object and 15 arrays are 16 levels.
TEST(EventJson, SixteenLevelsAreTheDeepest) {
  const auto nested = [](size_t arrays) {
    return "{\"a\":" + std::string(arrays, '[') + std::string(arrays, ']') + "}";
  };
  EXPECT_EQ(faultOf(nested(15)), "");
  EXPECT_NE(faultOf(nested(16)).find("nested deeper than 16"), std::string::npos);
}

}  // namespace
}  // namespace stowage::planner
