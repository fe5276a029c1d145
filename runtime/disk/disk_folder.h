// SPDX-License-Identifier: Apache-2.0
//
// Folders on disks, and how this room words what goes wrong with one: "disk '/scratch': cannot
// write ...: Input/output error".
#ifndef STOWAGE_RUNTIME_DISK_DISK_FOLDER_H_
#define STOWAGE_RUNTIME_DISK_DISK_FOLDER_H_

#include <string>

#include "ir/base/error.h"

namespace stowage::runtime {

ir::Error diskError(ir::ErrorCode code, const std::string& folder, const std::string& what);

/// kEnvironment, with the text of `number`, an errno.
ir::Error systemError(const std::string& folder, const std::string& what, int number);

/// Errors: kInvalidArgument for what is no folder, kEnvironment for memory (tmpfs, ramfs).
ir::Error checkIsDisk(const std::string& folder);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_DISK_DISK_FOLDER_H_
