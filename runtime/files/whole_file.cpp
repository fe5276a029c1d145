// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/whole_file.h"

#include <llvm/Support/FileSystem.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/files/link_target.h"

namespace stowage::runtime {

namespace {

/// The disk is full, the folder is somebody else's: no input is to blame.
ir::Error outputError(const std::string& path, const std::string& what) {
  return ir::makeError(ir::ErrorCode::kEnvironment, path + ": " + what);
}

ir::Error writeStream(const std::string& path, llvm::function_ref<void(llvm::raw_ostream&)> write) {
  std::error_code code;
  llvm::raw_fd_ostream os(path, code, llvm::sys::fs::CD_OpenExisting);
  if (!code) {
    write(os);
    os.flush();
    code = os.error();
    os.clear_error();
  }
  return code ? outputError(path, "cannot write: " + code.message()) : ir::success();
}

/// On the disk when it returns.
std::error_code writeAll(int descriptor, llvm::function_ref<void(llvm::raw_ostream&)> write) {
  llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  write(os);
  os.flush();
  std::error_code failure = os.error();
  if (!failure && ::fsync(descriptor) != 0)
    failure = std::error_code(errno, std::generic_category());
  os.clear_error();
  return failure;
}

struct PartFile {
  int descriptor = -1;
  std::string path;
};

/// A new file beside `path`.
ir::Expected<PartFile> makePart(const std::string& path) {
  PartFile part;
  llvm::SmallString<256> made;
  if (std::error_code code =
          llvm::sys::fs::createUniqueFile(path + ".%%%%%%%%.part", part.descriptor, made)) {
    return outputError(path, "cannot create a file beside it: " + code.message());
  }
  part.path = made.str().str();
  return part;
}

}  // namespace

ir::Error checkReplaceable(const std::string& name) {
  if (isStream(name)) return ir::success();
  ir::Expected<PartFile> part = makePart(linkTarget(name));
  if (!part) return part.takeError();
  ::close(part->descriptor);
  llvm::sys::fs::remove(part->path);
  return ir::success();
}

bool isStream(const std::string& path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status)) return false;
  return llvm::sys::fs::is_other(status);
}

ir::Error replaceFile(const std::string& name, llvm::function_ref<void(llvm::raw_ostream&)> write) {
  if (isStream(name)) return writeStream(name, write);
  const std::string path = linkTarget(name);
  ir::Expected<PartFile> part = makePart(path);
  if (!part) return part.takeError();
  const std::string& temporary = part->path;
  std::error_code failure = writeAll(part->descriptor, write);
  // createUniqueFile makes files private; give the mode an ordinary new file would have.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (!failure)
    failure =
        llvm::sys::fs::setPermissions(temporary, static_cast<llvm::sys::fs::perms>(0666 & ~mask));
  if (!failure) failure = llvm::sys::fs::rename(temporary, path);
  if (failure) {
    llvm::sys::fs::remove(temporary);
    return outputError(path, "cannot write: " + failure.message());
  }
  return ir::success();
}

}  // namespace stowage::runtime
