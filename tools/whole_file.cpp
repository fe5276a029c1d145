// SPDX-License-Identifier: Apache-2.0
#include "tools/whole_file.h"

#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Path.h>
#include <unistd.h>

#include "runtime/link_target.h"
#include "runtime/whole_file.h"

namespace stowage::tools {

namespace {
/// The disk is full, the folder is somebody else's: no input is to blame.
ir::Error outputError(const std::string& path, const std::string& what) {
  return ir::makeError(ir::ErrorCode::kEnvironment, path + ": " + what);
}
ir::Error badName(const std::string& path, const std::string& what) {
  return ir::makeError(ir::ErrorCode::kInvalidArgument, path + ": " + what);
}

ir::Error refuseInput(const std::string& output, const std::string& input) {
  const std::string which = input == output ? "an input" : "the input " + input;
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       output + ": is " + which + " of this command, expected another file");
}
}  // namespace

ir::Error checkWritable(const std::string& path, bool replace) {
  if (path == "-" || runtime::isStream(path)) return ir::success();
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
  if (output.empty() || output == "-" || runtime::isStream(output)) return ir::success();
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
  if (ir::Error error = checkWritable(runtime::linkTarget(name), replace)) return error;
  return runtime::replaceFile(name, write);
}

ir::Expected<std::string> readWholeFile(const std::string& path) {
  if (path != "-") return runtime::readFile(path);
  auto buffer = llvm::MemoryBuffer::getSTDIN();
  if (!buffer) {
    return ir::makeError(ir::ErrorCode::kIo,
                         path + ": cannot read: " + buffer.getError().message());
  }
  return (*buffer)->getBuffer().str();
}

}  // namespace stowage::tools
