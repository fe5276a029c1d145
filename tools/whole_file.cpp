// SPDX-License-Identifier: Apache-2.0
#include "tools/whole_file.h"

#include <fcntl.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Path.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/link_target.h"

namespace stowage::tools {

namespace {
ir::Error ioError(const std::string& path, const std::string& what) {
  return ir::makeError(ir::ErrorCode::kIo, path + ": " + what);
}
/// The disk is full, the folder is somebody else's: no input is to blame.
ir::Error outputError(const std::string& path, const std::string& what) {
  return ir::makeError(ir::ErrorCode::kEnvironment, path + ": " + what);
}
ir::Error badName(const std::string& path, const std::string& what) {
  return ir::makeError(ir::ErrorCode::kInvalidArgument, path + ": " + what);
}

/// Its bytes never end, or there are none.
bool isDevice(const std::string& path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status)) return false;
  return status.type() == llvm::sys::fs::file_type::character_file ||
         status.type() == llvm::sys::fs::file_type::block_file;
}

/// A device or a pipe: written to as it is, there is nothing to replace.
bool isStream(const std::string& path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status)) return false;
  return llvm::sys::fs::is_other(status);
}

ir::Error refuseInput(const std::string& output, const std::string& input) {
  const std::string which = input == output ? "an input" : "the input " + input;
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       output + ": is " + which + " of this command, expected another file");
}

ir::Error writeStream(const std::string& path,
                      const std::function<void(llvm::raw_ostream&)>& write) {
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
}  // namespace

ir::Error checkWritable(const std::string& path, bool replace) {
  if (path == "-" || isStream(path)) return ir::success();
  if (llvm::sys::fs::is_directory(path))
    return badName(path, "is a directory, expected a file name");
  if (!replace && llvm::sys::fs::exists(path)) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         path + ": exists already; -f replaces it");
  }
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (folder.empty()) folder = ".";
  if (!llvm::sys::fs::is_directory(folder))
    return badName(path, "folder '" + folder.str() + "' does not exist");
  if (::access(folder.str().c_str(), W_OK) != 0)
    return outputError(path, "folder '" + folder.str() + "' is not writable");
  return ir::success();
}

ir::Error checkOutputFolder(const std::string& folder) {
  llvm::StringRef there = folder;
  while (!there.empty() && !llvm::sys::fs::exists(there)) {
    there = llvm::sys::path::parent_path(there);
  }
  if (there.empty()) there = ".";
  if (!llvm::sys::fs::is_directory(there))
    return badName(there.str(), "is a file, expected a folder");
  if (::access(there.str().c_str(), W_OK) != 0)
    return outputError(there.str(), "the folder is not writable");
  return ir::success();
}

ir::Error checkIsNoInput(const std::string& output, llvm::ArrayRef<std::string> inputs) {
  if (output.empty() || output == "-" || isStream(output)) return ir::success();
  for (const std::string& input : inputs) {
    if (input.empty() || input == "-" || !llvm::sys::fs::equivalent(output, input)) continue;
    return refuseInput(output, input);
  }
  return ir::success();
}

ir::Error writeWholeFile(const std::string& name, bool replace,
                         const std::function<void(llvm::raw_ostream&)>& write) {
  if (name == "-") {
    write(llvm::outs());
    llvm::outs().flush();
    return ir::success();
  }
  if (isStream(name)) return writeStream(name, write);
  const std::string path = runtime::linkTarget(name);
  if (ir::Error error = checkWritable(path, replace)) return error;
  int descriptor = -1;
  llvm::SmallString<256> temporary;
  if (std::error_code code =
          llvm::sys::fs::createUniqueFile(path + ".%%%%%%%%.part", descriptor, temporary)) {
    return outputError(path, "cannot create a file beside it: " + code.message());
  }
  std::error_code failure;
  {
    llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
    write(os);
    os.flush();
    if (!os.has_error() && ::fsync(descriptor) != 0)
      failure = std::error_code(errno, std::generic_category());
    if (os.has_error()) failure = os.error();
    os.clear_error();
  }
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

ir::Expected<std::string> readWholeFile(const std::string& path) {
  if (path != "-" && isDevice(path)) return ioError(path, "is a device, expected a file");
  auto buffer = path == "-" ? llvm::MemoryBuffer::getSTDIN()
                            : llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                                          /*RequiresNullTerminator=*/false);
  if (!buffer) return ioError(path, "cannot read: " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

}  // namespace stowage::tools
