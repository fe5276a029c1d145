// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/safetensors.h"

#include <fcntl.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/Endian.h>
#include <llvm/Support/xxhash.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/files/input_file.h"

namespace stowage::runtime {

namespace {

ir::Error ioError(const std::string& path, const std::string& what) {
  return ir::makeError(ir::PlanError(ir::ErrorCode::kIo, what).at({path}));
}

ir::Error systemError(const std::string& path, const char* call) {
  return ioError(path, "cannot " + std::string(call) + ": " + std::strerror(errno));
}

constexpr size_t kHashDigits = 16;

std::string hashText(llvm::StringRef bytes) {
  const std::string digits = llvm::utohexstr(llvm::xxHash64(bytes), /*LowerCase=*/true);
  return std::string(kHashDigits - digits.size(), '0') + digits;
}

std::string hashText(llvm::ArrayRef<uint8_t> bytes) {
  return hashText(llvm::StringRef(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

/// Where the checksums stand in a header's text; npos: nowhere.
size_t findChecksums(llvm::StringRef text, const std::string& value) {
  const size_t key = text.find("\"" + std::string(kChecksumKey) + "\"");
  return key == llvm::StringRef::npos ? key : text.find("\"" + value + "\"", key) + 1;
}

ir::Error badChecksum(const std::string& path, const std::string& what) {
  return ir::makeError(
      ir::PlanError(ir::ErrorCode::kParse,
                    what + " is damaged: its checksum is another than when it was written")
          .at({path}));
}

/// Success for headers that have no checksums.
ir::Error checkHeader(const std::string& path, std::string text, const SafetensorsHeader& header) {
  const auto found = header.metadata.find(kChecksumKey);
  if (found == header.metadata.end()) return ir::success();
  const std::string& value = found->second;
  const size_t place = findChecksums(text, value);
  const bool fits = value.size() == kHashDigits * (header.entries.size() + 1) &&
                    place != llvm::StringRef::npos && place + value.size() < text.size();
  if (!fits) return badChecksum(path, "the header");
  text.replace(place, value.size(), std::string(value.size(), '0'));
  if (hashText(llvm::StringRef(text)) == value.substr(0, kHashDigits)) return ir::success();
  return badChecksum(path, "the header");
}

ir::Error readAt(int file, const std::string& path, int64_t offset,
                 llvm::MutableArrayRef<uint8_t> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        pread(file, bytes.data() + done, bytes.size() - done, offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return systemError(path, "read");
    if (got == 0) return ioError(path, "the file ends early");
    done += static_cast<size_t>(got);
  }
  return ir::success();
}

ir::Error writeAll(int file, const std::string& path, llvm::ArrayRef<uint8_t> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = write(file, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return systemError(path, "write");
    done += static_cast<size_t>(put);
  }
  return ir::success();
}

std::string folderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

constexpr int64_t kLengthBytes = 8;

}  // namespace

ir::Expected<SafetensorsReader> SafetensorsReader::open(const std::string& path) {
  ir::Expected<FileHandle> opened = openInput(path);
  if (!opened) return opened.takeError();
  FileHandle file = std::move(*opened);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return systemError(path, "stat");
  uint8_t length[kLengthBytes];
  if (status.st_size < kLengthBytes) return ioError(path, "the file is too short");
  if (ir::Error error = readAt(file.get(), path, 0, length)) return error;
  const uint64_t headerBytes = llvm::support::endian::read64le(length);
  if (headerBytes > static_cast<uint64_t>(kLongestSafetensorsHeader) ||
      headerBytes > static_cast<uint64_t>(status.st_size - kLengthBytes)) {
    return ir::makeError(ir::PlanError(ir::ErrorCode::kParse,
                                       "found a header of " + std::to_string(headerBytes) +
                                           " bytes in a file of " + std::to_string(status.st_size))
                             .at({path}));
  }
  const int64_t dataBegin = kLengthBytes + static_cast<int64_t>(headerBytes);
  std::vector<uint8_t> text(static_cast<size_t>(headerBytes));
  if (ir::Error error = readAt(file.get(), path, kLengthBytes, text)) return error;
  auto header = parseSafetensorsHeader(
      llvm::StringRef(reinterpret_cast<const char*>(text.data()), text.size()),
      status.st_size - dataBegin);
  if (!header) return ir::makeError(ir::takePayload(header.takeError()).at({path}));
  if (ir::Error error = checkHeader(path, {text.begin(), text.end()}, *header)) return error;
  return SafetensorsReader(path, std::move(file), std::move(*header), dataBegin);
}

SafetensorsReader::SafetensorsReader(std::string path, FileHandle file, SafetensorsHeader header,
                                     int64_t dataBegin)
    : path_(std::move(path)),
      file_(std::move(file)),
      header_(std::move(header)),
      dataBegin_(dataBegin) {
  for (size_t i = 0; i < header_.entries.size(); ++i) byName_[header_.entries[i].name] = i;
}

const SafetensorsEntry* SafetensorsReader::find(llvm::StringRef name) const {
  const auto found = byName_.find(std::string_view(name.data(), name.size()));
  return found == byName_.end() ? nullptr : &header_.entries[found->second];
}

ir::Error SafetensorsReader::read(const SafetensorsEntry& entry,
                                  llvm::MutableArrayRef<uint8_t> bytes) const {
  if (static_cast<int64_t>(bytes.size()) != entry.bytes.end - entry.bytes.begin) {
    return ioError(path_, "'" + entry.name + "' has " +
                              std::to_string(entry.bytes.end - entry.bytes.begin) +
                              " bytes, expected " + std::to_string(bytes.size()));
  }
  if (ir::Error error = readAt(file_.get(), path_, dataBegin_ + entry.bytes.begin, bytes)) {
    return error;
  }
  const auto sums = header_.metadata.find(kChecksumKey);
  const auto index = byName_.find(entry.name);
  if (sums == header_.metadata.end() || index == byName_.end()) return ir::success();
  const std::string expected = sums->second.substr(kHashDigits * (index->second + 1), kHashDigits);
  if (hashText(llvm::ArrayRef<uint8_t>(bytes)) == expected) return ir::success();
  return badChecksum(path_, "tensor '" + entry.name + "'");
}

ir::Error SafetensorsReader::readPart(const SafetensorsEntry& entry, int64_t offset,
                                      llvm::MutableArrayRef<uint8_t> bytes) const {
  const int64_t size = entry.bytes.end - entry.bytes.begin;
  if (offset < 0 || offset > size || static_cast<int64_t>(bytes.size()) > size - offset) {
    return ioError(path_, "'" + entry.name + "' has " + std::to_string(size) + " bytes, expected " +
                              std::to_string(bytes.size()) + " from byte " +
                              std::to_string(offset) + " on");
  }
  return readAt(file_.get(), path_, dataBegin_ + entry.bytes.begin + offset, bytes);
}

ir::Expected<SafetensorsWriter> SafetensorsWriter::create(const std::string& path,
                                                          SafetensorsHeader header) {
  const auto wanted = header.metadata.find(kChecksumKey);
  if (wanted != header.metadata.end()) {
    wanted->second = std::string(kHashDigits * (header.entries.size() + 1), '0');
  }
  const std::string text = layOutSafetensorsHeader(header);
  std::string temporary = path + ".tmp" + std::to_string(getpid());
  FileHandle file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.isOpen()) return systemError(temporary, "create");
  SafetensorsWriter writer(path, std::move(temporary), std::move(file), std::move(header));
  std::vector<uint8_t> begin(kLengthBytes);
  llvm::support::endian::write64le(begin.data(), text.size());
  begin.insert(begin.end(), text.begin(), text.end());
  if (ir::Error error = writeAll(writer.file_.get(), path, begin)) return error;
  const auto sums = writer.header_.metadata.find(kChecksumKey);
  if (sums != writer.header_.metadata.end()) {
    writer.checksumsAt_ = static_cast<int64_t>(kLengthBytes + findChecksums(text, sums->second));
    writer.checksums_ = hashText(llvm::StringRef(text));
  }
  return writer;
}

SafetensorsWriter::SafetensorsWriter(std::string path, std::string temporary, FileHandle file,
                                     SafetensorsHeader header)
    : path_(std::move(path)),
      temporary_(std::move(temporary)),
      file_(std::move(file)),
      header_(std::move(header)) {}

SafetensorsWriter::~SafetensorsWriter() {
  if (file_.isOpen()) unlink(temporary_.c_str());
}

ir::Error SafetensorsWriter::append(llvm::ArrayRef<uint8_t> bytes) {
  if (next_ >= header_.entries.size()) return ioError(path_, "more tensors than the header names");
  const SafetensorsEntry& entry = header_.entries[next_++];
  if (static_cast<int64_t>(bytes.size()) != entry.bytes.end - entry.bytes.begin) {
    return ioError(path_, "'" + entry.name + "' was given " + std::to_string(bytes.size()) +
                              " bytes, expected " +
                              std::to_string(entry.bytes.end - entry.bytes.begin));
  }
  if (checksumsAt_ > 0) checksums_ += hashText(bytes);
  return writeAll(file_.get(), path_, bytes);
}

ir::Error SafetensorsWriter::commit() {
  if (next_ != header_.entries.size()) {
    return ioError(path_, "only " + std::to_string(next_) + " of " +
                              std::to_string(header_.entries.size()) + " tensors were written");
  }
  const auto count = static_cast<ssize_t>(checksums_.size());
  if (checksumsAt_ > 0 &&
      pwrite(file_.get(), checksums_.data(), checksums_.size(), checksumsAt_) != count) {
    return systemError(path_, "write");
  }
  if (fsync(file_.get()) != 0) return systemError(path_, "fsync");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return systemError(path_, "rename");
  file_.close();
  // The name is on disk only when its folder is.
  const FileHandle folder(::open(folderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.isOpen() || fsync(folder.get()) != 0)
    return systemError(path_, "fsync of the folder");
  return ir::success();
}

}  // namespace stowage::runtime
