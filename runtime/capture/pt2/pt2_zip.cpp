// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2/pt2_zip.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/Support/CRC.h>
#include <llvm/Support/Endian.h>

#include <optional>
#include <utility>

#include "runtime/files/input_file.h"

namespace stowage::runtime {
namespace {

// Signatures and lengths of the format's records.
constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryHeader = 0x02014b50;
constexpr uint32_t kDirectoryEnd = 0x06054b50;
constexpr uint32_t kDirectoryEnd64 = 0x06064b50;
constexpr uint32_t kDirectoryLocator64 = 0x07064b50;
constexpr uint64_t kLocalHeaderBytes = 30;
constexpr uint64_t kDirectoryHeaderBytes = 46;
constexpr uint64_t kDirectoryEndBytes = 22;
constexpr uint64_t kDirectoryEnd64Bytes = 56;
constexpr uint64_t kDirectoryLocator64Bytes = 20;
constexpr uint32_t kSeeOther32 = 0xffffffff;  // a 64-bit field holds the number
constexpr uint16_t kSeeOther16 = 0xffff;
constexpr uint16_t kSizes64 = 1;  // the extra field with 64-bit numbers

uint16_t u16(llvm::StringRef bytes, size_t at) {
  return llvm::support::endian::read16le(bytes.data() + at);
}
uint32_t u32(llvm::StringRef bytes, size_t at) {
  return llvm::support::endian::read32le(bytes.data() + at);
}
uint64_t u64(llvm::StringRef bytes, size_t at) {
  return llvm::support::endian::read64le(bytes.data() + at);
}

struct Directory {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t count = 0;
};

class DirectoryReader {
 public:
  DirectoryReader(llvm::StringRef file, const std::string& path) : file_(file), path_(path) {}

  ir::Expected<std::vector<ZipEntry>> read() {
    ir::Expected<Directory> directory = findDirectory();
    if (!directory) return directory.takeError();
    const std::optional<llvm::StringRef> bytes = slice(directory->offset, directory->bytes);
    if (!bytes) {
      return malformed("found a directory of " + std::to_string(directory->bytes) +
                       " bytes at byte " + std::to_string(directory->offset) + " of " +
                       std::to_string(file_.size()));
    }
    for (llvm::StringRef rest = *bytes; !rest.empty();) {
      if (ir::Error error = readEntry(rest)) return error;
    }
    if (entries_.size() == directory->count) return std::move(entries_);
    return malformed("found " + std::to_string(entries_.size()) +
                     " entries in its directory, expected " + std::to_string(directory->count));
  }

 private:
  ir::Error malformed(const std::string& message) const {
    return ir::makeError(
        ir::PlanError(ir::ErrorCode::kParse, "not an archive of torch.export: " + message)
            .at({.file = path_}));
  }

  /// Nothing when the range is not wholly inside the file.
  std::optional<llvm::StringRef> slice(uint64_t offset, uint64_t bytes) const {
    if (offset > file_.size() || bytes > file_.size() - offset) return std::nullopt;
    return file_.substr(offset, bytes);
  }
  /// The record of this signature and length at `offset`, if it is there.
  std::optional<llvm::StringRef> record(uint64_t offset, uint64_t bytes, uint32_t signature) const {
    const std::optional<llvm::StringRef> found = slice(offset, bytes);
    return found && u32(*found, 0) == signature ? found : std::nullopt;
  }

  ir::Expected<Directory> findDirectory() const {
    const uint64_t at = file_.size() - kDirectoryEndBytes;  // wraps for tiny files: no such record
    const auto end = record(at, kDirectoryEndBytes, kDirectoryEnd);
    if (!end) return malformed("found no zip directory at its end, which may be cut off");
    const Directory directory{
        .offset = u32(*end, 16), .bytes = u32(*end, 12), .count = u16(*end, 10)};
    if (directory.offset != kSeeOther32 && directory.bytes != kSeeOther32 &&
        directory.count != kSeeOther16) {
      return directory;
    }
    const auto locator =
        record(at - kDirectoryLocator64Bytes, kDirectoryLocator64Bytes, kDirectoryLocator64);
    const auto end64 =
        locator ? record(u64(*locator, 8), kDirectoryEnd64Bytes, kDirectoryEnd64) : std::nullopt;
    if (!end64) return malformed("found no 64-bit zip directory");
    return Directory{.offset = u64(*end64, 48), .bytes = u64(*end64, 40), .count = u64(*end64, 32)};
  }

  /// Takes one record off the front of `rest`.
  ir::Error readEntry(llvm::StringRef& rest) {
    const std::string number = "entry " + std::to_string(entries_.size());
    if (rest.size() < kDirectoryHeaderBytes || u32(rest, 0) != kDirectoryHeader) {
      return malformed(number + " of its directory is no record of an entry");
    }
    const llvm::StringRef header = rest.take_front(kDirectoryHeaderBytes);
    const uint64_t nameBytes = u16(header, 28), extraBytes = u16(header, 30);
    const uint64_t tailBytes = nameBytes + extraBytes + u16(header, 32);
    rest = rest.drop_front(kDirectoryHeaderBytes);
    if (tailBytes > rest.size()) return malformed(number + " of its directory is cut off");
    ZipEntry entry{.name = rest.take_front(nameBytes), .checksum = u32(header, 16)};
    const llvm::StringRef extra = rest.substr(nameBytes, extraBytes);
    rest = rest.drop_front(tailBytes);

    const std::string name = number + " '" + entry.name.str() + "'";
    if (!names_.insert(entry.name).second) return malformed("found two entries " + name);
    if (u16(header, 10) != 0 || (u16(header, 8) & 1) != 0) {
      return malformed(name + " is compressed or encrypted, expected it as it is");
    }
    uint64_t bytes = u32(header, 24), storedBytes = u32(header, 20), offset = u32(header, 42);
    if (!readSizes64(extra, {&bytes, &storedBytes, &offset}) || bytes != storedBytes) {
      return malformed(name + " has sizes that contradict each other");
    }
    return findBytes(std::move(entry), {offset, bytes}, name);
  }

  /// Replaces the numbers that say so by those of the extra field, which has them in this order.
  static bool readSizes64(llvm::StringRef extra, llvm::ArrayRef<uint64_t*> numbers) {
    llvm::SmallVector<uint64_t*, 3> wanted;
    llvm::copy_if(numbers, std::back_inserter(wanted),
                  [](const uint64_t* number) { return *number == kSeeOther32; });
    if (wanted.empty()) return true;
    while (extra.size() >= 4 && u16(extra, 2) <= extra.size() - 4) {
      const llvm::StringRef field = extra.substr(4, u16(extra, 2));
      if (u16(extra, 0) == kSizes64 && field.size() >= 8 * wanted.size()) {
        for (size_t i = 0; i < wanted.size(); ++i) *wanted[i] = u64(field, 8 * i);
        return true;
      }
      extra = extra.drop_front(4 + field.size());
    }
    return false;
  }

  struct Range {
    uint64_t offset, bytes;
  };
  /// The bytes behind the entry's own header, whose place the directory gives.
  ir::Error findBytes(ZipEntry entry, Range range, const std::string& name) {
    const auto header = record(range.offset, kLocalHeaderBytes, kLocalHeader);
    if (!header) {
      return malformed("found no header of " + name + " at byte " + std::to_string(range.offset));
    }
    const uint64_t nameAt = range.offset + kLocalHeaderBytes;
    const uint64_t bytesAt = nameAt + u16(*header, 26) + u16(*header, 28);
    if (slice(nameAt, u16(*header, 26)) != entry.name) {
      return malformed("the header of " + name + " has another name");
    }
    const std::optional<llvm::StringRef> bytes = slice(bytesAt, range.bytes);
    if (!bytes) return malformed(name + " ends outside of the file");
    entry.bytes = *bytes;
    entries_.push_back(std::move(entry));
    return ir::success();
  }

  llvm::StringRef file_;
  const std::string& path_;
  std::vector<ZipEntry> entries_;
  llvm::StringSet<> names_;
};

}  // namespace

ir::Expected<ZipArchive> ZipArchive::open(const std::string& path) {
  ZipArchive archive;
  archive.path_ = path;
  ir::Expected<std::unique_ptr<llvm::MemoryBuffer>> file = mapInput(path);
  if (!file) return file.takeError();
  archive.file_ = std::move(*file);
  ir::Expected<std::vector<ZipEntry>> entries =
      DirectoryReader(archive.file_->getBuffer(), path).read();
  if (!entries) return entries.takeError();
  archive.entries_ = std::move(*entries);
  return archive;
}

ir::Expected<llvm::StringRef> ZipArchive::read(llvm::StringRef name) const {
  const auto error = [&](const char* what) {
    return ir::makeError(
        ir::PlanError(ir::ErrorCode::kParse, what + (" '" + name.str() + "'")).at({.file = path_}));
  };
  const auto entry = llvm::find_if(entries_, [&](const ZipEntry& e) { return e.name == name; });
  if (entry == entries_.end()) return error("found no entry");
  if (llvm::crc32(llvm::arrayRefFromStringRef(entry->bytes)) == entry->checksum) {
    return entry->bytes;
  }
  return error("found bytes that do not have the stated checksum in entry");
}

}  // namespace stowage::runtime
