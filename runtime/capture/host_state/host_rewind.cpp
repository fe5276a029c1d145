// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/host_state/host_rewind.h"

#include <torch/optim/schedulers/lr_scheduler.h>

namespace stowage::runtime {
namespace {

/// A derived class may name the member; the pointer to it works on any scheduler.
struct SchedulerAccess : torch::optim::LRScheduler {
  static unsigned& countOf(torch::optim::LRScheduler& scheduler) {
    return scheduler.*(&SchedulerAccess::step_count_);
  }
};

}  // namespace

std::vector<unsigned> schedulerCounts(const std::vector<torch::optim::LRScheduler*>& schedulers) {
  std::vector<unsigned> counts;
  for (torch::optim::LRScheduler* scheduler : schedulers) {
    counts.push_back(SchedulerAccess::countOf(*scheduler));
  }
  return counts;
}

void rewindSchedulers(const std::vector<torch::optim::LRScheduler*>& schedulers,
                      const std::vector<unsigned>& counts) {
  for (size_t i = 0; i < schedulers.size() && i < counts.size(); ++i) {
    SchedulerAccess::countOf(*schedulers[i]) = counts[i];
  }
}

}  // namespace stowage::runtime
