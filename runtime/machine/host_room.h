// SPDX-License-Identifier: Apache-2.0
//
// Room for more host memory while a training runs, which the kernel ends where there is none.
#ifndef STOWAGE_RUNTIME_MACHINE_HOST_ROOM_H_
#define STOWAGE_RUNTIME_MACHINE_HOST_ROOM_H_

#include <string>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "runtime/machine/machine_memory.h"

namespace stowage::runtime {

/// `what` takes so many bytes of host memory more. Errors: kOutOfDeviceMemory with what there is.
ir::Error checkHostRoom(Bytes bytes, const std::string& what,
                        const UsableMemory& usable = usableMemory());

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MACHINE_HOST_ROOM_H_
