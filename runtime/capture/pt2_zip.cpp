// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2_zip.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringSet.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

namespace stowage::runtime {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryHeader = 0x02014b50;
constexpr uint32_t kDirectoryEnd = 0x06054b50;
constexpr uint32_t kDirectoryEnd64 = 0x06064b50;
constexpr uint32_t kDirectoryLocator64 = 0x07064b50;
constexpr int64_t kLocalHeaderBytes = 30;
constexpr int64_t kDirectoryHeaderBytes = 46;
constexpr int64_t kDirectoryEndBytes = 22;
constexpr int64_t kDirectoryEnd64Bytes = 56;
constexpr int64_t kDirectoryLocator64Bytes = 20;
constexpr int64_t kMaxCommentBytes = 65535;
constexpr uint32_t kSeeOther32 = 0xffffffff;  // the 64-bit field holds the number
constexpr uint16_t kSeeOther16 = 0xffff;
constexpr uint16_t kEncrypted = 0x2041;  // encryption in its three forms
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
// Deflate cannot do better than 1032 to 1; graphs as JSON reach 30 to 1.
constexpr int64_t kMaxInflation = 200;
constexpr int64_t kMaxDirectoryBytes = int64_t{64} << 20;

/// Little-endian fields of a record whose length was checked.
class Fields {
 public:
  explicit Fields(llvm::StringRef bytes) : bytes_(bytes) {}
  uint16_t u16(size_t at) const { return static_cast<uint16_t>(number(at, 2)); }
  uint32_t u32(size_t at) const { return static_cast<uint32_t>(number(at, 4)); }
  /// Numbers above what a file can have become -1.
  int64_t i64(size_t at) const {
    const uint64_t value = number(at, 8);
    return value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
               ? -1
               : static_cast<int64_t>(value);
  }

 private:
  uint64_t number(size_t at, size_t count) const {
    uint64_t value = 0;
    for (size_t i = count; i > 0; --i) {
      value = value << 8 | static_cast<unsigned char>(bytes_[at + i - 1]);
    }
    return value;
  }

  llvm::StringRef bytes_;
};

/// A plain relative path: no way out of the archive, no characters that hide.
bool isPlainPath(llvm::StringRef name) {
  if (name.empty() || name.startswith("/")) return false;
  if (llvm::any_of(name, [](char c) { return c == '\\' || static_cast<unsigned char>(c) < ' '; })) {
    return false;
  }
  llvm::SmallVector<llvm::StringRef, 8> parts;
  name.split(parts, '/');
  return llvm::none_of(parts, [](llvm::StringRef part) { return part == ".." || part == "."; });
}

}  // namespace

class ZipReader::File {
 public:
  explicit File(std::string path) : path_(std::move(path)), stream_(path_, std::ios::binary) {
    if (!stream_) return;
    stream_.seekg(0, std::ios::end);
    size_ = static_cast<int64_t>(stream_.tellg());
  }

  /// -1 when the file cannot be read.
  int64_t size() const { return size_; }

  /// Nothing when the range is not wholly inside the file.
  std::optional<std::string> read(int64_t offset, int64_t count) {
    if (offset < 0 || count < 0 || offset > size_ || count > size_ - offset) return std::nullopt;
    std::string bytes(static_cast<size_t>(count), '\0');
    stream_.clear();
    stream_.seekg(offset);
    stream_.read(bytes.data(), count);
    if (stream_.gcount() != count) return std::nullopt;
    return bytes;
  }

  ir::Error error(ir::ErrorCode code, const std::string& message) const {
    return ir::makeError(ir::PlanError(code, message).at({.file = path_}));
  }
  ir::Error malformed(const std::string& message) const {
    return error(ir::ErrorCode::kParse, "not a zip archive that can be read: " + message);
  }

 private:
  std::string path_;
  std::ifstream stream_;
  int64_t size_ = -1;
};

namespace {

struct Directory {
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t count = 0;
  int64_t end = 0;  // where the first record behind it begins
};

/// Reads the directory at the end of the file, then each entry's own header.
template <typename File>
class DirectoryReader {
 public:
  explicit DirectoryReader(File& file) : file_(file) {}

  ir::Expected<std::vector<ZipEntry>> read() {
    ir::Expected<Directory> directory = findDirectory();
    if (!directory) return directory.takeError();
    if (ir::Error error = readDirectory(*directory)) return error;
    llvm::sort(entries_, [](const ZipEntry& a, const ZipEntry& b) {
      return std::tie(a.dataOffset, a.name) < std::tie(b.dataOffset, b.name);
    });
    if (ir::Error error = checkPlaces(*directory)) return error;
    return std::move(entries_);
  }

 private:
  ir::Expected<Directory> findDirectory() {
    const int64_t tailBytes = std::min(file_.size(), kDirectoryEndBytes + kMaxCommentBytes);
    const std::optional<std::string> tail = file_.read(file_.size() - tailBytes, tailBytes);
    if (!tail) return file_.error(ir::ErrorCode::kIo, "cannot be read");
    for (int64_t at = tailBytes - kDirectoryEndBytes; at >= 0; --at) {
      const Fields fields(llvm::StringRef(*tail).drop_front(static_cast<size_t>(at)));
      // The comment must end with the file, or the signature is part of something else.
      if (fields.u32(0) != kDirectoryEnd) continue;
      if (at + kDirectoryEndBytes + fields.u16(20) != tailBytes) continue;
      return readEnd(fields, file_.size() - tailBytes + at);
    }
    return file_.malformed("found no directory at its end");
  }

  ir::Expected<Directory> readEnd(const Fields& fields, int64_t at) {
    if (fields.u16(4) != 0 || fields.u16(6) != 0) return file_.malformed("it has several parts");
    const bool needs64 = fields.u32(16) == kSeeOther32 || fields.u32(12) == kSeeOther32 ||
                         fields.u16(10) == kSeeOther16;
    if (needs64) return readEnd64(at);
    return checked({.offset = fields.u32(16),
                    .bytes = fields.u32(12),
                    .count = fields.u16(10),
                    .end = at});
  }

  ir::Expected<Directory> checked(const Directory& directory) const {
    if (directory.offset < 0 || directory.bytes < 0 || directory.count < 0 ||
        directory.bytes > kMaxDirectoryBytes || directory.offset > directory.end ||
        directory.bytes > directory.end - directory.offset) {
      return file_.malformed("found a directory of " + std::to_string(directory.bytes) +
                             " bytes at byte " + std::to_string(directory.offset) +
                             ", expected it to end before byte " + std::to_string(directory.end));
    }
    return directory;
  }

  ir::Expected<Directory> readEnd64(int64_t at) {
    const int64_t locatorAt = at - kDirectoryLocator64Bytes;
    const std::optional<std::string> locator = file_.read(locatorAt, kDirectoryLocator64Bytes);
    if (!locator || Fields(*locator).u32(0) != kDirectoryLocator64) {
      return file_.malformed("found no locator of the 64-bit directory at byte " +
                             std::to_string(locatorAt));
    }
    const int64_t recordAt = Fields(*locator).i64(8);
    const std::optional<std::string> record = file_.read(recordAt, kDirectoryEnd64Bytes);
    if (!record || Fields(*record).u32(0) != kDirectoryEnd64 || recordAt > locatorAt) {
      return file_.malformed("found no 64-bit directory end at byte " + std::to_string(recordAt));
    }
    const Fields fields(*record);
    return checked({.offset = fields.i64(48),
                    .bytes = fields.i64(40),
                    .count = fields.i64(32),
                    .end = recordAt});
  }

  ir::Error readDirectory(const Directory& directory) {
    const std::optional<std::string> bytes = file_.read(directory.offset, directory.bytes);
    if (!bytes) return file_.error(ir::ErrorCode::kIo, "its directory cannot be read");
    llvm::StringRef rest(*bytes);
    while (!rest.empty()) {
      if (ir::Error error = readEntry(rest)) return error;
    }
    if (static_cast<int64_t>(entries_.size()) == directory.count) return ir::success();
    return file_.malformed("found " + std::to_string(entries_.size()) +
                           " entries in its directory, expected " +
                           std::to_string(directory.count));
  }

  /// Takes one record off the front of `rest`.
  ir::Error readEntry(llvm::StringRef& rest) {
    const std::string which = "entry " + std::to_string(entries_.size());
    if (static_cast<int64_t>(rest.size()) < kDirectoryHeaderBytes) {
      return file_.malformed(which + " of its directory is cut off");
    }
    const Fields fields(rest);
    const size_t nameBytes = fields.u16(28);
    const size_t extraBytes = fields.u16(30);
    const size_t allBytes =
        static_cast<size_t>(kDirectoryHeaderBytes) + nameBytes + extraBytes + fields.u16(32);
    if (fields.u32(0) != kDirectoryHeader || allBytes > rest.size()) {
      return file_.malformed(which + " of its directory is no record of an entry");
    }
    ZipEntry entry{.name = rest.substr(kDirectoryHeaderBytes, nameBytes).str(),
                   .dataOffset = fields.u32(42),
                   .storedBytes = fields.u32(20),
                   .bytes = fields.u32(24),
                   .checksum = fields.u32(16),
                   .deflated = fields.u16(10) == kDeflated};
    const std::string name = which + " '" + entry.name + "'";
    if (!isPlainPath(entry.name)) return file_.malformed(which + " has no plain relative path");
    if (!names_.insert(entry.name).second) return file_.malformed("two entries are " + name);
    if (fields.u16(10) != kStored && fields.u16(10) != kDeflated) {
      return file_.malformed(name + " is packed by method " + std::to_string(fields.u16(10)) +
                             ", expected 0 (stored) or 8 (deflated)");
    }
    if ((fields.u16(8) & kEncrypted) != 0) return file_.malformed(name + " is encrypted");
    const llvm::StringRef extra =
        rest.substr(static_cast<size_t>(kDirectoryHeaderBytes) + nameBytes, extraBytes);
    rest = rest.drop_front(allBytes);
    if (!readExtra64(extra, entry)) return file_.malformed(name + " lacks its 64-bit sizes");
    if (ir::Error error = checkSizes(entry, name)) return error;
    return addEntry(std::move(entry), fields, name);
  }

  /// Replaces the fields that say so by those of the 64-bit extra field.
  static bool readExtra64(llvm::StringRef extra, ZipEntry& entry) {
    llvm::SmallVector<int64_t*, 3> wanted;
    for (int64_t* field : {&entry.bytes, &entry.storedBytes, &entry.dataOffset}) {
      if (*field == kSeeOther32) wanted.push_back(field);
    }
    if (wanted.empty()) return true;
    while (extra.size() >= 4) {
      const Fields header(extra);
      const size_t bytes = header.u16(2);
      if (bytes > extra.size() - 4) return false;
      if (header.u16(0) == 1) {
        if (bytes < wanted.size() * 8) return false;
        for (size_t i = 0; i < wanted.size(); ++i) *wanted[i] = Fields(extra).i64(4 + 8 * i);
        return true;
      }
      extra = extra.drop_front(4 + bytes);
    }
    return false;
  }

  ir::Error checkSizes(const ZipEntry& entry, const std::string& name) {
    const bool negative = entry.bytes < 0 || entry.storedBytes < 0 || entry.dataOffset < 0;
    if (negative || entry.storedBytes > file_.size()) {
      return file_.malformed(name + " states sizes that this file cannot have");
    }
    if (!entry.deflated && entry.bytes != entry.storedBytes) {
      return file_.malformed(name + " is stored in " + std::to_string(entry.storedBytes) +
                             " bytes, expected " + std::to_string(entry.bytes));
    }
    if (entry.deflated && entry.bytes / kMaxInflation > entry.storedBytes) {
      return file_.malformed(name + " grows from " + std::to_string(entry.storedBytes) + " to " +
                             std::to_string(entry.bytes) + " bytes, expected at most " +
                             std::to_string(kMaxInflation) + " times as many");
    }
    return ir::success();
  }

  /// Reads the header in front of the data: the directory gives the place of that.
  ir::Error addEntry(ZipEntry entry, const Fields& directory, const std::string& name) {
    const int64_t headerAt = entry.dataOffset;
    const std::optional<std::string> header = file_.read(headerAt, kLocalHeaderBytes);
    if (!header || Fields(*header).u32(0) != kLocalHeader) {
      return file_.malformed("found no header of " + name + " at byte " + std::to_string(headerAt));
    }
    const Fields fields(*header);
    const std::optional<std::string> ownName =
        file_.read(headerAt + kLocalHeaderBytes, fields.u16(26));
    if (!ownName || *ownName != entry.name || fields.u16(8) != directory.u16(10)) {
      return file_.malformed("the header of " + name + " differs from the directory");
    }
    entry.dataOffset = headerAt + kLocalHeaderBytes + fields.u16(26) + fields.u16(28);
    headersAt_.push_back(headerAt);
    entries_.push_back(std::move(entry));
    return ir::success();
  }

  /// Entries from header to last byte do not touch each other or the directory.
  ir::Error checkPlaces(const Directory& directory) {
    llvm::sort(headersAt_);
    for (size_t i = 0; i < entries_.size(); ++i) {
      const ZipEntry& entry = entries_[i];
      const int64_t limit = i + 1 < entries_.size() ? headersAt_[i + 1] : directory.offset;
      if (entry.dataOffset < headersAt_[i] || entry.dataOffset > limit ||
          entry.storedBytes > limit - entry.dataOffset) {
        return file_.malformed("entry '" + entry.name + "' at byte " +
                               std::to_string(entry.dataOffset) + " runs into what follows it");
      }
    }
    return ir::success();
  }

  File& file_;
  std::vector<ZipEntry> entries_;
  std::vector<int64_t> headersAt_;
  llvm::StringSet<> names_;
};

/// Nothing when the bytes are no deflated stream of exactly that length.
std::optional<std::string> inflateBytes(const std::string& stored, int64_t bytes) {
  // zlib counts in 32 bits; entries that large are never deflated.
  constexpr int64_t kMost = std::numeric_limits<uInt>::max();
  if (bytes > kMost || static_cast<int64_t>(stored.size()) > kMost) return std::nullopt;
  std::string result(static_cast<size_t>(bytes), '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(stored.data()));
  stream.avail_in = static_cast<uInt>(stored.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const int status = inflate(&stream, Z_FINISH);
  const bool whole = status == Z_STREAM_END && stream.avail_out == 0 && stream.avail_in == 0;
  inflateEnd(&stream);
  if (!whole) return std::nullopt;
  return result;
}

uint32_t checksumOf(const std::string& bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

ZipReader::ZipReader(std::unique_ptr<File> file, std::vector<ZipEntry> entries)
    : file_(std::move(file)), entries_(std::move(entries)) {}
ZipReader::ZipReader(ZipReader&&) noexcept = default;
ZipReader& ZipReader::operator=(ZipReader&&) noexcept = default;
ZipReader::~ZipReader() = default;

ir::Expected<ZipReader> ZipReader::open(const std::string& path) {
  auto file = std::make_unique<File>(path);
  if (file->size() < 0) return file->error(ir::ErrorCode::kIo, "cannot be read");
  ir::Expected<std::vector<ZipEntry>> entries = DirectoryReader<File>(*file).read();
  if (!entries) return entries.takeError();
  return ZipReader(std::move(file), std::move(*entries));
}

const ZipEntry* ZipReader::findEntry(llvm::StringRef name) const {
  const auto found = llvm::find_if(entries_, [&](const ZipEntry& e) { return e.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

ir::Expected<std::string> ZipReader::read(const ZipEntry& entry, int64_t maxBytes) const {
  const std::string what = "entry '" + entry.name + "' ";
  if (entry.bytes > maxBytes) {
    return file_->malformed(what + "has " + std::to_string(entry.bytes) +
                            " bytes, expected at most " + std::to_string(maxBytes));
  }
  std::optional<std::string> bytes = file_->read(entry.dataOffset, entry.storedBytes);
  if (!bytes) return file_->error(ir::ErrorCode::kIo, what + "cannot be read");
  if (entry.deflated) {
    bytes = inflateBytes(*bytes, entry.bytes);
    if (!bytes) return file_->malformed(what + "is no deflated stream of the length stated");
  }
  if (checksumOf(*bytes) != entry.checksum) {
    return file_->malformed(what + "has another checksum than stated");
  }
  return std::move(*bytes);
}

}  // namespace stowage::runtime
