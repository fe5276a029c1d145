// SPDX-License-Identifier: Apache-2.0
//
// What collectives between the ranks of a training take, measured by all of them at once.
#ifndef STOWAGE_RUNTIME_CALIBRATE_RANKS_LINK_H_
#define STOWAGE_RUNTIME_CALIBRATE_RANKS_LINK_H_

#include "ir/base/error.h"
#include "ir/schedule/target.h"
#include "runtime/ranks/training_ranks.h"

namespace stowage::runtime {

/// Sets `betweenRanks` of `links`, and on GPUs `besideRanksPermille`. On CPUs: gathers of 8 MiB a
/// rank, the latency is that of 512 bytes, the best of five. All ranks call it together; what each
/// finds is its own. Errors: kEnvironment for a rank that is gone; those of the GPU library.
ir::Error measureRanksLink(ir::DeviceKind device, const TrainingRanks& ranks, ir::LinkModel& links);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CALIBRATE_RANKS_LINK_H_
