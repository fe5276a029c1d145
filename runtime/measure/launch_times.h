// SPDX-License-Identifier: Apache-2.0
//
// What the issuing thread takes to hand over the commands of a step, from when the parts of steps
// were handed over. A command's time includes the events before it; that of a step's first run also
// what comes between two steps. Where the thread may have been held back it says nothing: a driver
// lets it wait when much is under way, at a step's begin it waits for earlier steps, and before the
// first update for the step's scalars.
#ifndef STOWAGE_RUNTIME_MEASURE_ISSUE_TIMES_H_
#define STOWAGE_RUNTIME_MEASURE_ISSUE_TIMES_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/base/units.h"
#include "ir/schedule/schedule.h"
#include "runtime/measure/run_times.h"

namespace stowage::runtime {

/// By step and command; nothing for the first step, of which it is not known what was under way.
/// `steps` follow each other. `firstUpdate`: the command before which the thread waits for scalars.
std::vector<std::vector<std::optional<Nanoseconds>>> findIssueTimes(const ir::Schedule& schedule,
                                                                    llvm::ArrayRef<StepTimes> steps,
                                                                    size_t firstUpdate = SIZE_MAX);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_MEASURE_ISSUE_TIMES_H_
