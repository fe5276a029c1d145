// SPDX-License-Identifier: Apache-2.0
#include "runtime/whole_file.h"

#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/link_target.h"

namespace stowage::runtime {

namespace {

/// The disk is full, the folder is somebody else's: no input is to blame.
ir::Error outputError(const std::string& path, const std::string& what) {
  return ir::makeError(ir::ErrorCode::kEnvironment, path + ": " + what);
}

ir::Error readError(const std::string& path, const std::string& what) {
  return ir::makeError(ir::ErrorCode::kIo, path + ": " + what);
}

/// Its bytes never end, or there are none.
bool isDevice(const std::string& path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status)) return false;
  return status.type() == llvm::sys::fs::file_type::character_file ||
         status.type() == llvm::sys::fs::file_type::block_file;
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

}  // namespace

bool isStream(const std::string& path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status)) return false;
  return llvm::sys::fs::is_other(status);
}

ir::Error replaceFile(const std::string& name, llvm::function_ref<void(llvm::raw_ostream&)> write) {
  if (isStream(name)) return writeStream(name, write);
  const std::string path = linkTarget(name);
  int descriptor = -1;
  llvm::SmallString<256> temporary;
  if (std::error_code code =
          llvm::sys::fs::createUniqueFile(path + ".%%%%%%%%.part", descriptor, temporary)) {
    return outputError(path, "cannot create a file beside it: " + code.message());
  }
  std::error_code failure = writeAll(descriptor, write);
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

ir::Expected<std::string> readFile(const std::string& path) {
  if (isDevice(path)) return readError(path, "is a device, expected a file");
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) return readError(path, "cannot read: " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

}  // namespace stowage::runtime
