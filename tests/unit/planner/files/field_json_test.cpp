// SPDX-License-Identifier: Apache-2.0
//
// Typed reading of JSON values: the first fault with its place, what was found and what was
// expected.
#include "planner/files/field_json.h"

#include <gtest/gtest.h>

namespace stowage::planner {
namespace {

/// The fault that `read` meets in a document, as "pointer: message"; "" if none.
template <typename Read>
std::string faultOf(const char* text, Read read) {
  const Json document = Json::parse(text);
  std::optional<JsonFault> fault;
  read(FieldReader(document, "", fault));
  return fault ? fault->pointer + ": " + fault->message : "";
}

// The decision of the worked step (planner/README.md).
TEST(FieldJson, MembersAreReadByType) {
  const Json document =
      Json::parse(R"({"storage": 0, "gap": [1, 4], "action": "host", "pinned": false})");
  std::optional<JsonFault> fault;
  const FieldReader row(document, "/decisions/0", fault);
  EXPECT_EQ(row.field("storage").count(), 0);
  EXPECT_EQ(row.field("gap").elements().at(1).integer(0, 9), 4);
  EXPECT_EQ(row.field("action").text(), "host");
  EXPECT_FALSE(row.field("pinned").flag());
  EXPECT_TRUE(row.has("gap"));
  EXPECT_FALSE(row.has("why"));
  EXPECT_FALSE(fault);
}

// Reads after the first fault give harmless values and change nothing about it.
TEST(FieldJson, TheFirstFaultIsTheOneThatIsTold) {
  const auto read = [](const FieldReader& document) {
    EXPECT_EQ(document.field("gap").elements().at(1).integer(0, 3), 0);
    EXPECT_EQ(document.field("action").text(), "");
    EXPECT_EQ(document.field("nothing").field("below").integer(2, 5), 2);
  };
  EXPECT_EQ(faultOf(R"({"gap": [1, 4], "action": 7})", read),
            "/gap/1: found 4, expected a whole number from 0 to 3");
}

TEST(FieldJson, AWholeNumberIsNeitherAFractionNorBeyond64Bits) {
  const auto read = [](const FieldReader& document) { document.field("n").count(); };
  EXPECT_EQ(faultOf(R"({"n": 9223372036854775807})", read), "");
  const std::string expected = ", expected a whole number from 0 to 9223372036854775807";
  EXPECT_EQ(faultOf(R"({"n": 9223372036854775808})", read),
            "/n: found 9223372036854775808" + expected);
  EXPECT_EQ(faultOf(R"({"n": 1.0})", read), "/n: found 1.0" + expected);
  EXPECT_EQ(faultOf(R"({"n": -1})", read), "/n: found -1" + expected);
  EXPECT_EQ(faultOf(R"({"n": {}})", read), "/n: found an object" + expected);
  EXPECT_EQ(faultOf("{}", read), "/n: found nothing, expected it to be there");
  EXPECT_EQ(faultOf("[1, 2]", read), ": found an array of 2, expected an object");
}

// A JSON pointer writes "~" as "~0" and "/" as "~1". Of a long value the first 40 bytes are shown.
TEST(FieldJson, KeysAreEscapedAndLongValuesAreShortened) {
  const auto read = [](const FieldReader& document) {
    for (const auto& [key, member] : document.members()) member.flag();
  };
  EXPECT_EQ(faultOf(R"({"a/b~c": null})", read), "/a~1b~0c: found null, expected true or false");
  const std::string fits = "\"" + std::string(38, 'x') + "\"";
  EXPECT_EQ(excerpt(Json::parse(fits)), fits);
  EXPECT_EQ(excerpt(std::string(39, 'x')), "\"" + std::string(39, 'x') + "...");
}

}  // namespace
}  // namespace stowage::planner
