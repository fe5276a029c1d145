// SPDX-License-Identifier: Apache-2.0
#include "runtime/disk/disk_folder.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <cerrno>
#include <cstring>

namespace stowage::runtime {

ir::Error diskError(ir::ErrorCode code, const std::string& folder, const std::string& what) {
  return ir::makeError(code, "disk '" + folder + "': " + what);
}

ir::Error systemError(const std::string& folder, const std::string& what, int number) {
  return diskError(ir::ErrorCode::kEnvironment, folder, what + ": " + std::strerror(number));
}

ir::Error checkIsDisk(const std::string& folder) {
  struct stat about = {};
  if (stat(folder.c_str(), &about) != 0) {
    return diskError(ir::ErrorCode::kInvalidArgument, folder,
                     "expected a folder: " + std::string(std::strerror(errno)));
  }
  if (!S_ISDIR(about.st_mode)) {
    return diskError(ir::ErrorCode::kInvalidArgument, folder, "is a file, expected a folder");
  }
  struct statfs system = {};
  if (statfs(folder.c_str(), &system) != 0) {
    return systemError(folder, "cannot ask its file system", errno);
  }
  if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) {
    return diskError(ir::ErrorCode::kEnvironment, folder,
                     "is memory (tmpfs), expected a folder on a disk");
  }
  return ir::success();
}

}  // namespace stowage::runtime
