// SPDX-License-Identifier: Apache-2.0
//
// Safetensors files: read back as written, refused when anything in them cannot be believed, and
// whole under their name or not there.
#include "runtime/files/safetensors.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>

#include "tests/support/scratch_folder.h"

namespace stowage::tests {
namespace {

using runtime::layOutSafetensorsHeader;
using runtime::parseSafetensorsHeader;
using runtime::SafetensorsHeader;
using runtime::SafetensorsReader;
using runtime::SafetensorsWriter;

SafetensorsHeader twoTensors() {
  SafetensorsHeader header;
  header.entries.push_back({"wte", "", ir::DType::kF32, {2, 3}, {}});
  header.entries.push_back({"a \"b\"\n\xc3\xa9", "", ir::DType::kI64, {}, {}});
  header.metadata = {{"step", "12"}, {"format", "pt"}};
  return header;
}

TEST(Safetensors, HeaderReadsBackAsWritten) {
  SafetensorsHeader header = twoTensors();
  const std::string text = layOutSafetensorsHeader(header);
  EXPECT_EQ(text.size() % 8, 0U);
  auto read = parseSafetensorsHeader(text, 24 + 8);
  ASSERT_TRUE(static_cast<bool>(read)) << ir::describe(read.takeError());
  ASSERT_EQ(read->entries.size(), 2U);
  EXPECT_EQ(read->entries[0].name, "wte");
  EXPECT_EQ(read->entries[0].dtype, ir::DType::kF32);
  EXPECT_EQ(read->entries[0].sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(read->entries[1].name, "a \"b\"\n\xc3\xa9");
  EXPECT_EQ(read->entries[1].bytes, (ir::ByteRange{24, 32}));
  EXPECT_EQ(read->metadata.at("step"), "12");
}

struct BadHeader {
  const char* text;
  const char* says;
};

TEST(Safetensors, RefusesHeadersThatCannotBeBelieved) {
  const BadHeader cases[] = {
      {"", "expected '{'"},
      {"[]", "expected '{'"},
      {"{} x", "found more after the end"},
      {R"({"a":1})", "expected '{'"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}},)", "found more"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", "needs dtype, shape and two data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "two data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "not negative"},
      {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "expected ']'"},
      {R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]}})", "too large"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})",
       "its shape does not need"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "begins at byte 8"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "its shape does not need"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "the file holds 8"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", "the file holds 8"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "expected 0"},
      {R"({"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},"b":{"dtype":"U8","shape":[6],"data_offsets":[2,8]}})",
       "begins at byte 2, expected 6"},
      {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"a":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})",
       "there twice"},
      {R"({"a":{"dtype":"F32","extra":[2]}})", "unknown key 'extra'"},
      {R"({"__metadata__":{"a":{}}})", "expected '\"'"},
      {"{\"a\n\":{}}", "control character"},
      {R"({"\x":{}})", "unknown escape"},
      {R"({"\u12":{}})", "unknown escape"},
      {R"({"\ud800":{}})", "half of a pair"},
      {R"({"\udc00":{}})", "half of a pair"},
      {R"({"a)", "expected '\"'"},
      {R"({"a\)", "ends in an escape"},
  };
  for (const BadHeader& c : cases) {
    auto read = parseSafetensorsHeader(c.text, 8);
    ASSERT_FALSE(static_cast<bool>(read)) << c.text;
    const ir::PlanError error = ir::takePayload(read.takeError());
    EXPECT_EQ(error.code(), ir::ErrorCode::kParse);
    EXPECT_NE(error.text().find(c.says), std::string::npos) << c.text << "\n" << error.text();
  }
}

TEST(Safetensors, UnknownTypesAreKeptAsText) {
  auto read =
      parseSafetensorsHeader(R"({"a":{"dtype":"U16","shape":[4],"data_offsets":[0,8]}})", 8);
  ASSERT_TRUE(static_cast<bool>(read));
  EXPECT_EQ(read->entries[0].dtype, std::nullopt);
  EXPECT_EQ(read->entries[0].dtypeText, "U16");
}

TEST(Safetensors, DamagedHeadersNeverCrash) {
  SafetensorsHeader header = twoTensors();
  const std::string text = layOutSafetensorsHeader(header);
  std::mt19937_64 engine(1);
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = text;
    for (int k = 0; k < 3; ++k) damaged[engine() % damaged.size()] = static_cast<char>(engine());
    if (i % 3 == 0) damaged.resize(engine() % damaged.size());
    auto read = parseSafetensorsHeader(damaged, 32);
    if (!read) llvm::consumeError(read.takeError());
  }
}

TEST(Safetensors, FilesReadBackAsWritten) {
  const ScratchFolder folder("stowage_safetensors");
  const std::string path = folder.at("state.safetensors");
  auto writer = SafetensorsWriter::create(path, twoTensors());
  ASSERT_TRUE(static_cast<bool>(writer)) << ir::describe(writer.takeError());
  const std::vector<uint8_t> first(24, 7);
  const std::vector<uint8_t> second(8, 9);
  ASSERT_EQ(ir::describe(writer->append(first)), "");
  ASSERT_EQ(ir::describe(writer->append(second)), "");
  ASSERT_EQ(ir::describe(writer->commit()), "");
  EXPECT_EQ(folder.count(), 1U);

  auto reader = SafetensorsReader::open(path);
  ASSERT_TRUE(static_cast<bool>(reader)) << ir::describe(reader.takeError());
  const auto* entry = reader->find("wte");
  ASSERT_NE(entry, nullptr);
  std::vector<uint8_t> read(24);
  ASSERT_EQ(ir::describe(reader->read(*entry, read)), "");
  EXPECT_EQ(read, first);
  EXPECT_EQ(reader->find("nothing"), nullptr);
}

TEST(Safetensors, AFileThatIsNotCommittedLeavesTheOldOne) {
  const ScratchFolder folder("stowage_safetensors");
  const std::string path = folder.at("state.safetensors");
  std::ofstream(path) << "old";
  {
    auto writer = SafetensorsWriter::create(path, twoTensors());
    ASSERT_TRUE(static_cast<bool>(writer));
    ASSERT_EQ(ir::describe(writer->append(std::vector<uint8_t>(24))), "");
    EXPECT_NE(ir::describe(writer->append(std::vector<uint8_t>(9))), "");
    EXPECT_EQ(folder.count(), 2U);
  }
  EXPECT_EQ(folder.count(), 1U);
  std::string content;
  std::ifstream(path) >> content;
  EXPECT_EQ(content, "old");
}

TEST(Safetensors, CommitNeedsAllTensors) {
  const ScratchFolder folder("stowage_safetensors");
  auto writer = SafetensorsWriter::create(folder.at("x"), twoTensors());
  ASSERT_TRUE(static_cast<bool>(writer));
  EXPECT_NE(ir::describe(writer->commit()).find("only 0 of 2"), std::string::npos);
}

TEST(Safetensors, RefusesFilesThatAreCutOrNoFiles) {
  const ScratchFolder folder("stowage_safetensors");
  EXPECT_FALSE(ir::describe(SafetensorsReader::open(folder.at("none")).takeError()).empty());
  std::ofstream(folder.at("short")) << "abc";
  EXPECT_NE(ir::describe(SafetensorsReader::open(folder.at("short")).takeError()).find("too short"),
            std::string::npos);
  std::ofstream(folder.at("huge")) << std::string(8, '\xff') << "{}";
  EXPECT_NE(
      ir::describe(SafetensorsReader::open(folder.at("huge")).takeError()).find("found a header"),
      std::string::npos);
}

}  // namespace
}  // namespace stowage::tests
