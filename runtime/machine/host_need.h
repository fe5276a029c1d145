// SPDX-License-Identifier: Apache-2.0
//
// Host memory that running a plan takes, compared with what there is. All pages of the arenas are
// made before the first step: where they do not fit, the kernel ends the process.
#ifndef STOWAGE_RUNTIME_MACHINE_HOST_NEED_H_
#define STOWAGE_RUNTIME_MACHINE_HOST_NEED_H_

#include <optional>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"
#include "runtime/machine/machine_memory.h"

namespace stowage::runtime {

struct HostNeed {
  Bytes host;    // the host arena
  Bytes device;  // the device arena where that is host memory, too: on the CPU

  /// With the page tables of the arenas, and what a run takes beside them.
  Bytes total() const;
};
HostNeed hostNeedOf(const ir::Schedule& schedule, ir::DeviceKind device);

/// Errors: kEnvironment: what the plan needs, what there is, and which limit of the host would do.
ir::Error checkHostMemory(const HostNeed& need, const UsableMemory& usable = usableMemory());

/// The largest host arena beside such a device arena that leaves a sixteenth of what is usable to
/// others, in whole MiB; nothing where there is none.
std::optional<Bytes> largestHostArena(Bytes device, const UsableMemory& usable);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MACHINE_HOST_NEED_H_
