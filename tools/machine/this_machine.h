// SPDX-License-Identifier: Apache-2.0
//
// The machine that a step is measured or run on: the CPU, or the GPU when the step's target is one.
// A GPU is opened before libtorch is asked about CUDA, so before anything is captured.
#ifndef STOWAGE_TOOLS_MACHINE_THIS_MACHINE_H_
#define STOWAGE_TOOLS_MACHINE_THIS_MACHINE_H_

#include <string>

#include "ir/base/error.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/target.h"

namespace stowage::tools {

/// Nothing to do for a CPU target. Errors: kEnvironment when there is no GPU, or its libraries do
/// not load.
ir::Error openGpuFor(const ir::Target& target);
/// A device for each of so many processes: GPUs that this process sees, or cores. Errors:
/// those of loading the GPU library.
ir::Expected<bool> hasDevices(ir::DeviceKind device, int64_t count);
/// What the user should know of how the opened GPU counts memory (runtime/gpu/gpu_library.h); ""
/// for CPU targets.
std::string describeMemoryCount(const ir::Target& target);

/// "" where this machine has the host memory that a plan of this schedule takes, or is none for
/// its target; else a sentence with what there is and what would fit.
std::string describeHostLack(const ir::Schedule& schedule, const ir::Target& target);

/// The plan's target with this machine's device kind, capability and libraries. `threads`: how many
/// an op may use; 0: as many as the plan says, at most the number of cores.
ir::Expected<ir::Target> describeThisMachine(const ir::Target& plan, int threads);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MACHINE_THIS_MACHINE_H_
