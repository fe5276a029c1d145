// SPDX-License-Identifier: Apache-2.0
//
// Files and folders that take the place of others do so where a link leads, so that the link stays
// a link.
#ifndef STOWAGE_RUNTIME_FILES_LINK_TARGET_H_
#define STOWAGE_RUNTIME_FILES_LINK_TARGET_H_

#include <llvm/ADT/SmallString.h>
#include <llvm/Support/FileSystem.h>

#include <string>

namespace stowage::runtime {

/// What `path` leads to when it is a link to something; else `path` itself.
inline std::string linkTarget(const std::string& path) {
  llvm::SmallString<256> real;
  if (!llvm::sys::fs::is_symlink_file(path) || llvm::sys::fs::real_path(path, real)) return path;
  return real.str().str();
}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_FILES_LINK_TARGET_H_
