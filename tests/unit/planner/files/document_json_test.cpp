// SPDX-License-Identifier: Apache-2.0
//
// A versioned document on a small format: "boxes" 1.1 with a title and a long array of boxes. In
// which order things are checked, and what a version allows.
#include "planner/files/document_json.h"

#include <gtest/gtest.h>

namespace stowage::planner {
namespace {

const char* const kSchema = R"({
  "type": "object", "required": ["kind", "schema_version", "title", "boxes"],
  "additionalProperties": false,
  "properties": {"kind": {"const": "boxes"}, "schema_version": {"type": "string"},
                 "title": {"type": "string"}, "boxes": {"type": "array"}},
  "definitions": {"box": {"type": "object", "required": ["bytes"], "additionalProperties": false,
                          "properties": {"bytes": {"type": "integer", "minimum": 1}}}}
})";

const DocumentFormat& boxes() {
  static const DocumentFormat kFormat = [] {
    DocumentFormat format("boxes", kSchema, {{"boxes", "box"}});
    format.minor = 1;
    return format;
  }();
  return kFormat;
}

/// The error, or the title and the sum of the boxes' bytes: "two 3".
std::string read(const std::string& text) {
  int64_t sum = 0;
  std::string title;
  const auto onElement = [&](size_t, size_t, const FieldReader& box) {
    sum += box.field("bytes").integer(0, 1000);
  };
  const auto onHeader = [&](const FieldReader& header) { title = header.field("title").text(); };
  ir::Error error = readDocument(boxes(), text, "b.json", {onElement, onHeader});
  if (error) return ir::describe(std::move(error));
  return title + " " + std::to_string(sum);
}
std::string document(const std::string& version, const std::string& rest) {
  return "{\"kind\":\"boxes\",\"schema_version\":\"" + version + "\",\n" + rest + "}";
}

TEST(DocumentJson, ElementsAndHeaderAreReadWithTheirPlaces) {
  EXPECT_EQ(read(document("1.1", "\"title\":\"two\",\"boxes\":[\n{\"bytes\":1},\n{\"bytes\":2}]")),
            "two 3");
  EXPECT_EQ(read(document("1.1", "\"title\":\"two\",\"boxes\":[\n{\"bytes\":1},\n{\"bytes\":-2}]")),
            "b.json:4: at /boxes/1/bytes: found -2, expected a whole number from 0 to 1000");
  EXPECT_EQ(read(document("1.1", "\"title\":2,\"boxes\":[]")),
            "b.json: at /title: found 2, expected a string");
}

// The visitor takes 0; the schema does not.
TEST(DocumentJson, TheSchemaIsCheckedAfterTheVisitor) {
  const std::string error = read(document("1.1", "\"title\":\"\",\"boxes\":[{\"bytes\":0}]"));
  EXPECT_EQ(error, "b.json:2: at /boxes/0/bytes: found 0, expected a whole number from 1");
}

// A newer minor version may have members that we do not know, anywhere. Ours may not.
TEST(DocumentJson, UnknownMembersAreIgnoredInANewerMinorVersionAlone) {
  const std::string rest = "\"title\":\"t\",\"boxes\":[{\"bytes\":1,\"colour\":2}]";
  for (const char* version : {"1.0", "1.1"}) {
    EXPECT_NE(read(document(version, rest)).find("at /boxes/0/colour: "), std::string::npos);
  }
  EXPECT_EQ(read(document("1.2", rest + ",\"extra\":{}")), "t 1");
  EXPECT_NE(read(document("1.1", "\"title\":\"t\",\"boxes\":[],\"extra\":{}")).find("at /extra: "),
            std::string::npos);
}

// Kind and version come first: what else is wrong with a document of another kind is not our
// matter.
TEST(DocumentJson, AnotherKindOrMajorVersionIsRefusedBeforeAllElse) {
  EXPECT_EQ(read(R"({"kind":"crates","schema_version":"1.0",,)"),
            "b.json: at /kind: found 'crates', expected 'boxes'");
  for (const char* version : {"2.0", "0.9", "1", "1.x", "1.-1", "1.0.0"}) {
    EXPECT_EQ(read(document(version, ",,")),
              std::string("b.json: at /schema_version: found '") + version +
                  "', expected '1.1' or another minor version of it");
  }
  EXPECT_NE(read(document("1.1", "\"title\":\"t\",\"boxes\":[")).find("b.json:2: "),
            std::string::npos)
      << "syntax, with its line";
}

}  // namespace
}  // namespace stowage::planner
