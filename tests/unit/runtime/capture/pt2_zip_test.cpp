// SPDX-License-Identifier: Apache-2.0
//
// The zip reader: what it reads, and that each of its rules refuses the archive that breaks it.

#include "runtime/capture/pt2_zip.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/zip_writer.h"

namespace stowage::tests {
namespace {

using runtime::ZipEntry;
using runtime::ZipReader;

constexpr int64_t kMost = int64_t{1} << 20;

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

ir::Expected<ZipReader> openBytes(const std::string& bytes) {
  return ZipReader::open(writeTemporaryFile("zip_test.zip", bytes));
}

/// The bytes of an entry, or what was wrong.
std::string readOrWhy(const std::string& archive, const std::string& name, int64_t most = kMost) {
  ir::Expected<ZipReader> reader = openBytes(archive);
  if (!reader) return "error: " + ir::describe(reader.takeError());
  const ZipEntry* entry = reader->findEntry(name);
  if (entry == nullptr) return "no entry";
  ir::Expected<std::string> bytes = reader->read(*entry, most);
  return bytes ? *bytes : "error: " + ir::describe(bytes.takeError());
}

std::string why(const std::string& archive) {
  ir::Expected<ZipReader> reader = openBytes(archive);
  if (reader) return "";
  const ir::PlanError error = ir::takePayload(reader.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kParse);
  EXPECT_FALSE(error.location().file.empty());
  return error.text();
}

TEST(Pt2Zip, ReadsStoredAndDeflatedEntries) {
  const std::string text = repeated("a line of text\n", 40);
  for (const bool wide : {false, true}) {
    const std::string archive =
        writeZip({{"r/a", text}, {"r/b", text, /*deflate=*/true}, {"r/empty", ""}}, wide);
    EXPECT_EQ(readOrWhy(archive, "r/a"), text);
    EXPECT_EQ(readOrWhy(archive, "r/b"), text);
    EXPECT_EQ(readOrWhy(archive, "r/empty"), "");
    EXPECT_EQ(readOrWhy(archive, "r/c"), "no entry");
  }
}

TEST(Pt2Zip, ListsEntriesInOrderOfPlace) {
  auto reader = llvm::cantFail(openBytes(writeZip({{"z", "1"}, {"a", "22"}})));
  ASSERT_EQ(reader.entries().size(), 2U);
  EXPECT_EQ(reader.entries()[0].name, "z");
  EXPECT_EQ(reader.entries()[1].bytes, 2);
}

TEST(Pt2Zip, RefusesMoreBytesThanAskedFor) {
  const std::string archive = writeZip({{"a", "12345"}});
  EXPECT_EQ(readOrWhy(archive, "a", 5), "12345");
  EXPECT_NE(readOrWhy(archive, "a", 4).find("expected at most 4"), std::string::npos);
}

TEST(Pt2Zip, RefusesAnArchiveThatIsCutOff) {
  const std::string archive = writeZip({{"folder/a", repeated("x", 50)}, {"b", "y"}});
  for (size_t length = 0; length < archive.size(); ++length) {
    EXPECT_NE(why(archive.substr(0, length)), "") << length;
  }
}

TEST(Pt2Zip, RefusesAFileThatIsNotThere) {
  ir::Expected<ZipReader> reader = ZipReader::open(testing::TempDir() + "no such file");
  ASSERT_FALSE(reader);
  EXPECT_EQ(ir::takePayload(reader.takeError()).code(), ir::ErrorCode::kIo);
}

/// Replaces `count` bytes from `at`, counted from the end when negative.
std::string changed(std::string bytes, int64_t at, const std::string& with) {
  const size_t place = at < 0 ? bytes.size() - static_cast<size_t>(-at) : static_cast<size_t>(at);
  return bytes.replace(place, with.size(), with);
}

TEST(Pt2Zip, RefusesWrongChecksums) {
  const std::string archive = writeZip({{"a", "hello"}});
  // The data follow the header of 30 bytes and the name.
  EXPECT_NE(readOrWhy(changed(archive, 31, "j"), "a").find("checksum"), std::string::npos);
}

struct Damage {
  const char* what;
  int64_t at;  // in the directory's record of the first of two entries "a" and "b" of 5 bytes
  std::string with;
  const char* expected;
};

TEST(Pt2Zip, RefusesEachKindOfDamage) {
  const std::string archive = writeZip({{"a", "hello"}, {"b", "world"}});
  const int64_t directory = 2 * (30 + 1 + 5);
  const std::vector<Damage> damages = {
      {"signature", 0, "Q", "no record of an entry"},
      {"encryption", 8, "\x01", "encrypted"},
      {"method", 10, "\x09", "method 9"},
      {"stored size", 20, "\x04", "is stored in 4 bytes"},
      {"both sizes", 20, std::string("\xff\0\0\0\xff\0\0\0", 8), "states sizes"},
      {"overlap", 20, std::string("\x09\0\0\0\x09\0\0\0", 8), "runs into what follows"},
      {"name length", 28, "\xff", "no record of an entry"},
      {"wide without its field", 24, "\xff\xff\xff\xff", "64-bit sizes"},
      {"place", 42, "\x01", "found no header"},
      {"place of the other", 42, "\x24", "differs from the directory"},
      {"name", 46, "/", "relative path"},
      {"same name", 46, "b", "differs from the directory"}};
  for (const Damage& damage : damages) {
    EXPECT_NE(why(changed(archive, directory + damage.at, damage.with)).find(damage.expected),
              std::string::npos)
        << damage.what << ": " << why(changed(archive, directory + damage.at, damage.with));
  }
  EXPECT_EQ(why(archive), "");
}

TEST(Pt2Zip, RefusesADirectoryThatDoesNotFit) {
  const std::string archive = writeZip({{"a", "hello"}});
  EXPECT_NE(why(changed(archive, -12, "\x02")).find("entries"), std::string::npos);   // count
  EXPECT_NE(why(changed(archive, -6, "\xff")).find("directory of"), std::string::npos);  // place
  EXPECT_NE(why(changed(archive, -18, "\x01")).find("several parts"), std::string::npos);
  EXPECT_NE(why(archive + "x").find("no directory"), std::string::npos);
}

TEST(Pt2Zip, RefusesNamesThatLeadElsewhere) {
  for (const char* name : {"/etc/passwd", "a/../../b", "a\\b", "./a", "a\nb", ""}) {
    EXPECT_NE(why(writeZip({{name, "x"}})).find("relative path"), std::string::npos) << name;
  }
  EXPECT_NE(why(writeZip({{"a", "x"}, {"a", "y"}})).find("two entries"), std::string::npos);
}

TEST(Pt2Zip, RefusesEntriesThatGrowBeyondReason) {
  const std::string bomb(1 << 20, '\0');
  EXPECT_NE(why(writeZip({{"a", bomb, /*deflate=*/true}})).find("times as many"),
            std::string::npos);
}

TEST(Pt2Zip, RefusesDeflatedBytesOfAnotherLength) {
  const std::string text = repeated("some text ", 20);
  const std::string archive = writeZip({{"a", text, /*deflate=*/true}});
  auto reader = llvm::cantFail(openBytes(archive));
  const int64_t directory = reader.entries()[0].dataOffset + reader.entries()[0].storedBytes;
  const std::string longer = changed(archive, directory + 24, "\xc9");
  EXPECT_NE(readOrWhy(longer, "a").find("deflated stream"), std::string::npos);
  const std::string noise = changed(archive, 31, "\xff\xff");
  EXPECT_NE(readOrWhy(noise, "a").find("deflated stream"), std::string::npos);
}

}  // namespace
}  // namespace stowage::tests
