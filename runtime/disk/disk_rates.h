// SPDX-License-Identifier: Apache-2.0
//
// What the disk below a folder carries, measured through the file that a tier for tensors uses
// (DiskFile): each direction alone, then both at once. Memory that looks like a disk (tmpfs) is
// refused, since its rate is another thing's.
#ifndef STOWAGE_RUNTIME_DISK_DISK_RATES_H_
#define STOWAGE_RUNTIME_DISK_DISK_RATES_H_

#include <string>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "ir/schedule/target.h"

namespace stowage::runtime {

struct DiskRates {
  ir::LinkRate write;  // until the disk says that the bytes are on it
  ir::LinkRate read;
  int bothPermille = 1000;  // what both directions keep of their rates, on average, at once
};

inline constexpr Bytes kDiskSample(int64_t{1} << 30);

/// Writes a nameless file of `sample` bytes (rounded up to whole blocks of 4 MiB) in `folder`, once
/// more, and reads it back; it is gone afterwards, however this ends. The second time counts, as a
/// training writes the same blocks in every step. Latency is that of 4096 bytes.
/// Errors: kInvalidArgument for what is no folder, kEnvironment where files cannot be made, the
/// space does not suffice, reads cannot pass the page cache, or the disk fails.
ir::Expected<DiskRates> measureDisk(const std::string& folder, Bytes sample = kDiskSample);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_DISK_DISK_RATES_H_
