// SPDX-License-Identifier: Apache-2.0
#include "runtime/calibrate/ranks_link.h"

#include <algorithm>
#include <vector>

#include "runtime/executor/wall_time.h"
#include "runtime/gpu/gpu_library.h"

namespace stowage::runtime {

namespace {

constexpr int64_t kBytes = int64_t{8} << 20;  // of each rank
constexpr int64_t kSmallBytes = 512;
constexpr int kTries = 5;

ir::Expected<Nanoseconds> bestGather(Communicator& ranks, int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  const std::vector<uint8_t> own(size, 1);
  std::vector<uint8_t> all(size * static_cast<size_t>(ranks.count()));
  Nanoseconds best(INT64_MAX);
  for (int i = 0; i <= kTries; ++i) {
    if (ir::Error error = ranks.agree("measuring what lies between ranks", 0)) return error;
    const Nanoseconds begin = wallTime();
    if (ir::Error error = ranks.allGather(own, all)) return error;
    if (i > 0) best = std::min(best, wallTime() - begin);
  }
  return best;
}

}  // namespace

ir::Error measureRanksLink(ir::DeviceKind device, const TrainingRanks& ranks,
                           ir::LinkModel& links) {
  if (device == ir::DeviceKind::kCuda) {
    ir::Expected<GpuLibrary*> gpu = loadGpuLibrary();
    if (!gpu) return gpu.takeError();
    return (*gpu)->measureRanks(ranks, links);
  }
  ir::Expected<Nanoseconds> small = bestGather(ranks.inSteps, kSmallBytes);
  if (!small) return small.takeError();
  ir::Expected<Nanoseconds> large = bestGather(ranks.inSteps, kBytes);
  if (!large) return large.takeError();
  links.betweenRanks = linkBetweenRanks(kBytes * (ranks.count() - 1), *small, *large);
  return ir::success();
}

}  // namespace stowage::runtime
