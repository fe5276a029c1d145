// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "runtime/files/safetensors.h"

namespace stowage::runtime {

namespace {

ir::Error badInput(const std::string& path, std::string what) {
  return ir::makeError(ir::PlanError(ir::ErrorCode::kIo, std::move(what)).at({.file = path}));
}

ir::Error systemError(const std::string& path) {
  return badInput(path, "cannot be read: " + std::generic_category().message(errno));
}

/// "" for a regular file.
const char* kindOf(mode_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

ir::Error tooLarge(const std::string& path, const std::string& found, Bytes most) {
  return badInput(path, "has " + found + ", expected at most " + formatBytes(most));
}

ir::Expected<Bytes> sizeOf(const FileHandle& file, const std::string& path) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return systemError(path);
  return Bytes(status.st_size);
}

}  // namespace

ir::Expected<FileHandle> openInput(const std::string& path) {
  // Opening a pipe without O_NONBLOCK waits for a writer; a terminal must not become this
  // process's.
  FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  // Sockets cannot be opened at all.
  if (!file.isOpen() && errno != ENXIO) return systemError(path);
  struct stat status {};
  const int failed = file.isOpen() ? fstat(file.get(), &status) : stat(path.c_str(), &status);
  if (failed != 0) return systemError(path);
  const std::string kind = kindOf(status.st_mode);
  if (kind.empty()) return file;
  return badInput(path, "is " + kind + ", expected a regular file");
}

ir::Expected<std::string> readInput(const std::string& path, Bytes most) {
  ir::Expected<FileHandle> file = openInput(path);
  if (!file) return file.takeError();
  ir::Expected<Bytes> size = sizeOf(*file, path);
  if (!size) return size.takeError();
  if (*size > most) return tooLarge(path, formatBytes(*size), most);
  return readDescriptor(file->get(), path, most);
}

ir::Expected<std::string> readDescriptor(int descriptor, const std::string& name, Bytes most) {
  constexpr size_t kPart = size_t{1} << 20;
  const auto limit = static_cast<size_t>(most.value());
  std::string text;
  while (true) {
    const size_t done = text.size();
    text.resize(std::min(done + std::max(kPart, done / 2), limit + 1));
    const ssize_t got = ::read(descriptor, text.data() + done, text.size() - done);
    const int failure = errno;
    text.resize(done + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return text;
    errno = failure;
    if (got < 0 && errno != EINTR) return systemError(name);
    if (text.size() > limit) return tooLarge(name, "more than " + formatBytes(most), most);
  }
}

ir::Expected<std::unique_ptr<llvm::MemoryBuffer>> mapInput(const std::string& path) {
  ir::Expected<FileHandle> file = openInput(path);
  if (!file) return file.takeError();
  ir::Expected<Bytes> size = sizeOf(*file, path);
  if (!size) return size.takeError();
  auto buffer =
      llvm::MemoryBuffer::getOpenFile(file->get(), path, static_cast<uint64_t>(size->value()),
                                      /*RequiresNullTerminator=*/false);
  if (buffer) return std::move(*buffer);
  return badInput(path, "cannot be read: " + buffer.getError().message());
}

}  // namespace stowage::runtime
