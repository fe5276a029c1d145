// SPDX-License-Identifier: Apache-2.0
#include "tools/files/whole_file.h"

#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>
#include <unistd.h>

#include "runtime/files/link_target.h"
#include "runtime/files/whole_file.h"

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
  // A link that leads nowhere is there, too.
  const bool isThere = llvm::sys::fs::exists(path) || llvm::sys::fs::is_symlink_file(path);
  if (!replace && isThere) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         path + ": exists already; -f replaces it");
  }
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (folder.empty()) folder = ".";
  if (!llvm::sys::fs::is_directory(folder))
    return badName(path, "folder '" + folder.str() + "' does not exist");
  if (::access(folder.str().c_str(), W_OK) != 0)
    return outputError(path, "folder '" + folder.str() + "' is not writable");
  return runtime::checkReplaceable(path);
}

ir::Error checkOutputFolder(const std::string& folder) {
  llvm::StringRef there = folder;
  while (!there.empty() && !llvm::sys::fs::exists(there)) {
    if (llvm::sys::fs::is_symlink_file(there))
      return badName(there.str(), "is a link that leads nowhere, expected a folder");
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

ir::Expected<std::string> readWholeFile(const std::string& path, Bytes most) {
  if (path == "-") return runtime::readDescriptor(STDIN_FILENO, "standard input", most);
  ir::Expected<std::string> text = runtime::readInput(path, most);
  llvm::sys::fs::file_status status;
  const bool isPipe =
      !llvm::sys::fs::status(path, status) && status.type() == llvm::sys::fs::file_type::fifo_file;
  if (text || !isPipe) return text;
  const ir::PlanError found = ir::takePayload(text.takeError());
  return ir::makeError(
      ir::PlanError(found.code(), found.text() + "; '-' reads what is piped into the command")
          .at(found.location()));
}

}  // namespace stowage::tools
