// SPDX-License-Identifier: Apache-2.0
//
// What the control groups of this process leave it of their memory. Both versions of groups; a
// process lies in a group, in the one around that, and so on, and each may have a limit.
#ifndef STOWAGE_RUNTIME_MACHINE_CONTROL_GROUP_H_
#define STOWAGE_RUNTIME_MACHINE_CONTROL_GROUP_H_

#include <optional>
#include <string>

#include "ir/base/units.h"

namespace stowage::runtime {

struct GroupMemory {
  Bytes limit;  // memory.max, or memory.high if that is less
  Bytes free;   // caches of files count as free, shared memory does not
};

/// Of the groups that this process is in, the one with the least free; nothing where none has a
/// limit. `root`: the folder that has proc/ and sys/.
std::optional<GroupMemory> tightestGroup(const std::string& root = "");

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MACHINE_CONTROL_GROUP_H_
