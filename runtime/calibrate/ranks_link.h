// SPDX-License-Identifier: Apache-2.0
//
// What collectives between the ranks of a training take, measured by all of them at once.
#ifndef STOWAGE_RUNTIME_CALIBRATE_RANKS_LINK_H_
#define STOWAGE_RUNTIME_CALIBRATE_RANKS_LINK_H_

#include <algorithm>
#include <cstdint>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "ir/schedule/target.h"
#include "runtime/ranks/training_ranks.h"

namespace stowage::runtime {

/// From the times of a gather of hardly any bytes, and of one in which a rank receives `received`.
inline ir::LinkRate linkBetweenRanks(int64_t received, Nanoseconds small, Nanoseconds large) {
  const auto moving = static_cast<double>(std::max<int64_t>(1, (large - small).value()));
  const double perSecond = static_cast<double>(received) * 1e9 / moving;
  return {.bandwidth = BytesPerSecond(static_cast<int64_t>(perSecond)), .latency = small};
}

/// Sets `betweenRanks` of `links`, and on GPUs `besideRanksPermille`. On CPUs: gathers of 8 MiB a
/// rank, the latency is that of 512 bytes, the best of five. All ranks call it together; what each
/// finds is its own. Errors: kEnvironment for a rank that is gone; those of the GPU library.
ir::Error measureRanksLink(ir::DeviceKind device, const TrainingRanks& ranks, ir::LinkModel& links);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CALIBRATE_RANKS_LINK_H_
