// SPDX-License-Identifier: Apache-2.0
//
// What a step on the CPU device takes beside its ops and the bytes that it copies: the compute
// thread pops, binds and checks each op; a copy is handed to a thread of its own and back; the
// issuing thread pushes each command. Measured on a chain of ops of one element, by the device that
// runs steps, so a step of small ops is predicted as it runs.
#ifndef STOWAGE_RUNTIME_CPU_HANDOVER_H_
#define STOWAGE_RUNTIME_CPU_HANDOVER_H_

#include "ir/error.h"
#include "ir/units.h"

namespace stowage::runtime {

struct CpuHandover {
  Nanoseconds launch;      // of the compute thread, beside the op itself
  Nanoseconds copy;        // from the end of what a copy waits for to what waits for the copy
  Nanoseconds issueOfRun;  // of the issuing thread
  Nanoseconds issueOfCopy;
};

/// The best of several rounds. In the process's deterministic mode, with as many threads as steps
/// have: some of libtorch's libraries keep the last number for the whole process, and with another
/// one plain libtorch gives other bits afterwards. Errors: those of the device.
ir::Expected<CpuHandover> measureCpuHandover(int intraOpThreads);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CPU_HANDOVER_H_
