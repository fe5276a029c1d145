// SPDX-License-Identifier: Apache-2.0
//
// Where the disk arena of a plan is: what a device is given to make its disk file.
#ifndef STOWAGE_RUNTIME_DISK_DISK_PLACE_H_
#define STOWAGE_RUNTIME_DISK_DISK_PLACE_H_

#include <string>

#include "ir/base/units.h"

namespace stowage::runtime {

struct DiskPlace {
  std::string folder;
  Bytes bytes;          // 0: no disk
  bool verify = false;  // checksums of what is written, compared when it is read
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_DISK_DISK_PLACE_H_
