// SPDX-License-Identifier: Apache-2.0
//
// The unit of a disk arena: what is on disk begins at a multiple of it and takes whole ones, since
// disks are read and written past the page cache.
#ifndef STOWAGE_IR_SCHEDULE_DISK_BLOCK_H_
#define STOWAGE_IR_SCHEDULE_DISK_BLOCK_H_

#include <cstdint>

namespace stowage::ir {

inline constexpr int64_t kDiskBlock = 4096;  // bytes

}  // namespace stowage::ir

#endif  // STOWAGE_IR_SCHEDULE_DISK_BLOCK_H_
