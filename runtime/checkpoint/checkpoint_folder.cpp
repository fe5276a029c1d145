// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/affix.h"
#include "runtime/files/link_target.h"

namespace stowage::runtime {
namespace {

constexpr const char* kLockText = "stowage ";  // and the process's number

ir::Error systemError(const std::string& path, const char* what, std::error_code code) {
  return ir::makeError(ir::ErrorCode::kIo,
                       path + ": cannot " + std::string(what) + ": " + code.message());
}

ir::Error systemError(const std::string& path, const char* what) {
  return systemError(path, what, std::error_code(errno, std::generic_category()));
}

/// The file's first bytes; fewer where it is shorter.
std::string readBegin(const std::string& path) {
  std::array<char, 256> bytes{};
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const ssize_t got = file.isOpen() ? ::read(file.get(), bytes.data(), bytes.size()) : 0;
  return {bytes.data(), static_cast<size_t>(std::max<ssize_t>(got, 0))};
}

bool isRegularFile(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

/// Is it a file that a checkpoint of ours consists of, or one that was still being written? The
/// writer's begin is enough: what was killed ends anywhere.
bool isOfCheckpoint(const std::string& path) {
  if (!isRegularFile(path)) return false;
  llvm::StringRef name = llvm::sys::path::filename(path);
  const bool isModel = name.consume_front(kModelFile);
  if (!isModel && !name.consume_front(kOptimizerFile)) return false;
  const bool isUnfinished = name.consume_front(".tmp") && !name.empty() &&
                            name.find_first_not_of("0123456789") == llvm::StringRef::npos;
  if (!name.empty() && !isUnfinished) return false;
  constexpr size_t kLengthBytes = 8;
  const std::string begin = readBegin(path);
  if (isUnfinished && begin.empty()) return true;
  const llvm::StringRef text =
      llvm::StringRef(begin).drop_front(std::min(begin.size(), kLengthBytes));
  const std::string key = std::string("\"") + (isModel ? kModelStepsKey : kVersionKey) + "\":";
  return ir::startsWith(text, "{\"__metadata__\":{") && text.contains(key);
}

/// The files of a folder that is there; none of one that is not. Errors: kInvalidArgument for
/// anything that is not a checkpoint's.
ir::Expected<std::vector<std::string>> listOwnFiles(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(folder, code), end; it != end && !code;
       it.increment(code)) {
    if (!isOfCheckpoint(it->path())) {
      return ir::makeError(ir::ErrorCode::kInvalidArgument,
                           folder + ": holds '" + llvm::sys::path::filename(it->path()).str() +
                               "', which is no file of a checkpoint, expected a checkpoint, an "
                               "empty folder or none");
    }
    files.push_back(it->path());
  }
  const bool isThere = code != std::errc::no_such_file_or_directory;
  if (code && isThere) return systemError(folder, "read the folder", code);
  return files;
}

/// Removes the files of a checkpoint, not the folder.
ir::Error emptyFolder(const std::string& folder) {
  auto files = listOwnFiles(folder);
  if (!files) return files.takeError();
  for (const std::string& file : *files) {
    if (unlink(file.c_str()) != 0) return systemError(file, "remove");
  }
  return ir::success();
}

ir::Error removeCheckpoint(const std::string& folder) {
  if (ir::Error error = emptyFolder(folder)) return error;
  if (rmdir(folder.c_str()) == 0 || errno == ENOENT) return ir::success();
  return systemError(folder, "remove");
}

bool isSameFile(int file, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(file, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

/// False when another process has it. Where the file system has no locks, nobody can tell.
bool lockAlone(int file) {
  return flock(file, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR);
}

ir::Error isWritten(const std::string& folder, const std::string& by) {
  return ir::makeError(
      ir::ErrorCode::kInvalidArgument,
      folder + ": " + by + " saves there just now, expected a folder that no other training uses");
}

bool isMountPoint(const std::string& path) {
  struct statx status {};
  return statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &status) == 0 &&
         (status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0 &&
         (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/// A new checkpoint is made beside the old one, which is renamed.
ir::Error checkCanBeRenamed(const std::string& folder) {
  const auto refuse = [&](const std::string& what) {
    return ir::makeError(
        ir::ErrorCode::kInvalidArgument,
        folder + ": " + what + ", expected a folder that can be renamed, such as one below it");
  };
  const std::string target = besideCheckpoint(folder, "");
  const llvm::StringRef name = llvm::sys::path::filename(target);
  if (name.empty() || name == "/" || name == "." || name == "..")
    return refuse("has no name of its own");
  if (llvm::sys::fs::is_symlink_file(target)) return refuse("is a link that leads nowhere");
  return isMountPoint(target) ? refuse("is a mount point") : ir::success();
}

}  // namespace

std::string besideCheckpoint(const std::string& folder, const char* suffix) {
  return linkTarget(llvm::StringRef(folder).rtrim('/').str()) + suffix;
}

ir::Error checkCheckpointFolder(const std::string& folder) {
  if (ir::Error error = checkCanBeRenamed(folder)) return error;
  if (llvm::sys::fs::exists(folder) && !llvm::sys::fs::is_directory(folder)) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         folder + ": is a file, expected a folder or a new name");
  }
  for (const char* suffix : {"", kPartialSuffix, kPreviousSuffix}) {
    const std::string path = besideCheckpoint(folder, suffix);
    if (*suffix != '\0' && llvm::sys::fs::is_symlink_file(path)) {
      return ir::makeError(ir::ErrorCode::kInvalidArgument,
                           path + ": is a link, expected nothing or what an interrupted save left");
    }
    auto files = listOwnFiles(path);
    if (!files) return files.takeError();
  }
  return ir::success();
}

CheckpointWrite::CheckpointWrite(std::string folder, FileHandle lock)
    : folder_(std::move(folder)),
      partial_(besideCheckpoint(folder_, kPartialSuffix)),
      lock_(std::move(lock)) {}

ir::Expected<CheckpointWrite> CheckpointWrite::begin(const std::string& folder) {
  if (ir::Error error = checkCheckpointFolder(folder)) return error;
  const std::string partial = besideCheckpoint(folder, kPartialSuffix);
  while (true) {
    if (std::error_code code = llvm::sys::fs::create_directories(partial)) {
      return systemError(partial, "make the folder", code);
    }
    FileHandle lock(::open(partial.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!lock.isOpen() && errno == ENOENT) continue;  // just moved by who wrote it
    if (!lock.isOpen()) return systemError(partial, "open");
    if (!lockAlone(lock.get())) return isWritten(folder, "another process");
    if (!isSameFile(lock.get(), partial)) continue;
    if (ir::Error error = emptyFolder(partial)) return error;
    return CheckpointWrite(folder, std::move(lock));
  }
}

CheckpointWrite::~CheckpointWrite() {
  if (lock_.isOpen()) llvm::consumeError(removeCheckpoint(partial_));
}

ir::Error CheckpointWrite::commit() {
  const std::string target = besideCheckpoint(folder_, "");
  const std::string previous = besideCheckpoint(folder_, kPreviousSuffix);
  if (llvm::sys::fs::exists(target)) {
    if (ir::Error error = removeCheckpoint(previous)) return error;
    if (std::error_code code = llvm::sys::fs::rename(target, previous)) {
      return systemError(target, "rename", code);
    }
  }
  if (std::error_code code = llvm::sys::fs::rename(partial_, target)) {
    return systemError(partial_, "rename", code);
  }
  lock_.close();
  return removeCheckpoint(previous);
}

ir::Expected<CheckpointClaim> CheckpointClaim::take(const std::string& folder) {
  const std::string path = besideCheckpoint(folder, kLockSuffix);
  const llvm::StringRef parent = llvm::sys::path::parent_path(path);
  if (std::error_code code = llvm::sys::fs::create_directories(parent.empty() ? "." : parent)) {
    return systemError(parent.str(), "make the folder", code);
  }
  while (true) {
    FileHandle lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!lock.isOpen()) return systemError(path, "open");
    const std::string text = readBegin(path);
    if (!isRegularFile(path) || (!text.empty() && !ir::startsWith(text, kLockText))) {
      return ir::makeError(ir::ErrorCode::kInvalidArgument,
                           path + ": is no lock of a checkpoint, expected no such file");
    }
    if (!lockAlone(lock.get())) {
      const llvm::StringRef owner = llvm::StringRef(text).drop_front(
          std::min(text.size(), llvm::StringRef(kLockText).size()));
      return isWritten(folder,
                       "another process" + (owner.empty() ? "" : " (" + owner.trim().str() + ")"));
    }
    if (!isSameFile(lock.get(), path)) continue;  // its owner just ended
    const std::string own = kLockText + std::to_string(getpid()) + "\n";
    if (ftruncate(lock.get(), 0) != 0 ||
        pwrite(lock.get(), own.data(), own.size(), 0) != static_cast<ssize_t>(own.size())) {
      return systemError(path, "write");
    }
    return CheckpointClaim(path, std::move(lock));
  }
}

CheckpointClaim::~CheckpointClaim() {
  if (lock_.isOpen()) unlink(path_.c_str());
}

}  // namespace stowage::runtime
