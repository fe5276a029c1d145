// SPDX-License-Identifier: Apache-2.0
//
// The zip reader: it reads what libtorch writes, and each of its rules refuses the archive that
// breaks it.

#include "runtime/capture/pt2/pt2_zip.h"

#include <gtest/gtest.h>
#include <llvm/Support/Endian.h>

#include <string>

#include "tests/support/small_pt2.h"

namespace stowage::tests {
namespace {

using runtime::ZipArchive;

ir::Expected<ZipArchive> openBytes(const std::string& bytes) {
  return ZipArchive::open(writeTemporaryFile("zip_test.zip", bytes));
}

/// The bytes of an entry, or what was wrong.
std::string readOrWhy(const std::string& archive, const std::string& name) {
  ir::Expected<ZipArchive> opened = openBytes(archive);
  if (!opened) return "error: " + ir::describe(opened.takeError());
  ir::Expected<llvm::StringRef> bytes = opened->read("archive/" + name);
  return bytes ? bytes->str() : "error: " + ir::describe(bytes.takeError());
}

std::string why(const std::string& archive) {
  ir::Expected<ZipArchive> opened = openBytes(archive);
  if (opened) return "";
  const ir::PlanError error = ir::takePayload(opened.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kParse);
  EXPECT_FALSE(error.location().file.empty());
  return error.text();
}

/// Overwrites what stands at `at`.
std::string changed(std::string bytes, size_t at, const std::string& with) {
  return bytes.replace(at, with.size(), with);
}

/// Where the directory's record of the first entry begins.
size_t directoryOf(const std::string& archive) { return archive.find("PK\x01\x02"); }

TEST(Pt2Zip, ReadsWhatLibtorchWrites) {
  const std::string text(1000, 'x');
  const std::string archive = packZip({{"a", text}, {"folder/b", "y"}, {"empty", ""}});
  EXPECT_EQ(readOrWhy(archive, "a"), text);
  EXPECT_EQ(readOrWhy(archive, "folder/b"), "y");
  EXPECT_EQ(readOrWhy(archive, "empty"), "");
  EXPECT_NE(readOrWhy(archive, "c").find("found no entry 'archive/c'"), std::string::npos);
}

TEST(Pt2Zip, ReadsTheDirectoryOfLargeArchives) {
  // libtorch always writes the 64-bit directory end; small archives need not look at it.
  const std::string archive = packZip({{"a", "hello"}});
  const std::string large = changed(archive, archive.size() - 14,
                                    std::string("\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 10));
  EXPECT_EQ(readOrWhy(large, "a"), "hello");
  const size_t end = archive.find("PK\x06\x06");
  EXPECT_NE(why(changed(large, end, "Q")).find("64-bit zip directory"), std::string::npos);
}

TEST(Pt2Zip, ReadsSizesOfLargeEntries) {
  // The entry's sizes move to an extra field of its record, as for more than 4 GiB.
  std::string archive = packZip({{"a", "hello"}});
  const size_t record = directoryOf(archive);
  const std::string sizes("\x01\0\x10\0\x05\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0", 20);
  archive.insert(record + 46 + std::string("archive/a").size(), sizes);
  archive = changed(archive, record + 20, "\xff\xff\xff\xff\xff\xff\xff\xff");
  archive = changed(archive, record + 30, "\x14");
  char* directoryBytes = archive.data() + archive.size() - 22 + 12;
  llvm::support::endian::write32le(
      directoryBytes, llvm::support::endian::read32le(directoryBytes) + uint32_t(sizes.size()));
  EXPECT_EQ(readOrWhy(archive, "a"), "hello");
  EXPECT_NE(why(changed(archive, record + 46 + 9, "\x02")).find("contradict"), std::string::npos);
}

TEST(Pt2Zip, RefusesAnArchiveThatIsCutOff) {
  const std::string archive = packZip({{"folder/a", std::string(50, 'x')}, {"b", "y"}});
  for (size_t length = 0; length < archive.size(); length += 3) {
    EXPECT_NE(why(archive.substr(0, length)), "") << length;
  }
  EXPECT_NE(why(archive + "x").find("no zip directory"), std::string::npos);
}

TEST(Pt2Zip, RefusesAFileThatIsNotThere) {
  ir::Expected<ZipArchive> opened = ZipArchive::open(temporaryPath("no such file"));
  ASSERT_FALSE(opened);
  EXPECT_EQ(ir::takePayload(opened.takeError()).code(), ir::ErrorCode::kIo);
}

TEST(Pt2Zip, RefusesWrongChecksums) {
  const std::string archive = packZip({{"a", "hello"}});
  EXPECT_NE(readOrWhy(changed(archive, archive.find("hello"), "j"), "a").find("checksum"),
            std::string::npos);
}

TEST(Pt2Zip, RefusesEachKindOfDamage) {
  struct Damage {
    const char* what;
    size_t at;  // in the directory's record of the first of two entries "a" and "b" of 5 bytes
    std::string with;
    const char* expected;
  };
  const std::string archive = packZip({{"a", "hello"}, {"b", "world"}});
  const std::vector<Damage> damages = {
      {"signature", 0, "Q", "no record of an entry"},
      {"encryption", 8, "\x01", "compressed or encrypted"},
      {"method", 10, "\x08", "compressed or encrypted"},
      {"stored size", 20, "\x04", "contradict"},
      {"both sizes", 20, std::string("\xff\xff\xff\x7f\xff\xff\xff\x7f", 8), "outside of the file"},
      {"name length", 28, "\xff\xff", "is cut off"},
      {"wide without its field", 20, "\xff\xff\xff\xff\xff\xff\xff\xff", "contradict"},
      {"place", 42, "\x01", "found no header"},
      {"name", 46 + 8, "c", "has another name"},
      {"same name", 46 + 8, "b", "has another name"}};
  for (const Damage& damage : damages) {
    const std::string text = why(changed(archive, directoryOf(archive) + damage.at, damage.with));
    EXPECT_NE(text.find(damage.expected), std::string::npos) << damage.what << ": " << text;
  }
  EXPECT_EQ(why(archive), "");
}

TEST(Pt2Zip, RefusesADirectoryThatDoesNotFit) {
  const std::string archive = packZip({{"a", "hello"}});
  const size_t end = archive.size() - 22;
  EXPECT_NE(why(changed(archive, end + 10, "\x09")).find("expected 9"), std::string::npos);
  EXPECT_NE(why(changed(archive, end + 18, "\x7f")).find("directory of"), std::string::npos);
  EXPECT_NE(why(changed(archive, end + 14, "\x7f")).find("directory of"), std::string::npos);
}

TEST(Pt2Zip, RefusesTwoEntriesOfOneName) {
  std::string archive = packZip({{"a", "hello"}, {"b", "world"}});
  for (size_t at; (at = archive.find("archive/b")) != std::string::npos;) archive[at + 8] = 'a';
  EXPECT_NE(why(archive).find("two entries"), std::string::npos);
}

TEST(Pt2Zip, RefusesCompressedEntries) {
  EXPECT_NE(why(packZip({{"a", std::string(500, 'x'), /*compress=*/true}})).find("compressed"),
            std::string::npos);
}

}  // namespace
}  // namespace stowage::tests
