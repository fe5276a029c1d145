// SPDX-License-Identifier: Apache-2.0
//
// JSON written as it goes: commas, line breaks where they are asked for, and what strings may hold.
#include "planner/files/write_json.h"

#include <gtest/gtest.h>

#include "ir/base/ids.h"

namespace stowage::planner {
namespace {

std::string quoted(const std::string& text) {
  std::string json;
  llvm::raw_string_ostream os(json);
  JsonWriter writer(os);
  writer.value(text);
  EXPECT_FALSE(writer.failed());
  return os.str();
}

// The decision of the worked step (planner/README.md), and an offload with a line of its own.
TEST(WriteJson, AnElementPerLineAndNoOtherSpace) {
  std::string json;
  llvm::raw_string_ostream os(json);
  JsonWriter writer(os);
  writer.beginObject().key("decisions").beginArray();
  writer.breakLine().beginObject().field("storage", int64_t{0}).key("gap").beginArray();
  writer.value(int64_t{1}).value(int64_t{4}).endArray().field("action", "host");
  writer.field("pinned", false).endObject();
  writer.breakLine().beginObject().field("bytes", Bytes(512));
  writer.idField("prev", std::vector{ir::CommandId(3), ir::CommandId(5)}).endObject();
  writer.endArray().breakLine().key("none").beginArray().endArray().breakLine().endObject();
  EXPECT_EQ(os.str(),
            "{\"decisions\":[\n"
            "{\"storage\":0,\"gap\":[1,4],\"action\":\"host\",\"pinned\":false},\n"
            "{\"bytes\":512,\"prev\":[3,5]}],\n"
            "\"none\":[]\n"
            "}");
}

TEST(WriteJson, StringsAreEscapedAndStayUtf8) {
  EXPECT_EQ(quoted("a \"b\" \\ c"), "\"a \\\"b\\\" \\\\ c\"");
  EXPECT_EQ(quoted("1\n2\t3"), "\"1\\n2\\u00093\"");
  EXPECT_EQ(quoted(std::string("\x00\x1f\x7f", 3)), "\"\\u0000\\u001f\\u007f\"");
  EXPECT_EQ(quoted("\xc3\xa9"), "\"\xc3\xa9\"");
}

TEST(WriteJson, AStringThatIsNotUtf8Fails) {
  std::string json;
  llvm::raw_string_ostream os(json);
  JsonWriter writer(os);
  writer.beginObject().field("name", "\xff").field("other", "fine").endObject();
  EXPECT_TRUE(writer.failed()) << "also when the last string was text";
}

}  // namespace
}  // namespace stowage::planner
