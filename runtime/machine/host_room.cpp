// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine/host_room.h"

namespace stowage::runtime {

ir::Error checkHostRoom(Bytes bytes, const std::string& what, const UsableMemory& usable) {
  if (bytes <= usable.bytes) return ir::success();
  return ir::makeError(
      ir::ErrorCode::kOutOfDeviceMemory,
      what + " needs " + formatBytes(bytes) + " of host memory, and " + usable.source);
}

}  // namespace stowage::runtime
