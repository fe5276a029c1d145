// SPDX-License-Identifier: Apache-2.0
//
// Step counts of learning rate schedulers, which libtorch keeps protected: read and put back.
#ifndef STOWAGE_RUNTIME_CAPTURE_HOST_STATE_HOST_REWIND_H_
#define STOWAGE_RUNTIME_CAPTURE_HOST_STATE_HOST_REWIND_H_

#include <vector>

namespace torch::optim {
class LRScheduler;
}

namespace stowage::runtime {

std::vector<unsigned> schedulerCounts(const std::vector<torch::optim::LRScheduler*>& schedulers);
void rewindSchedulers(const std::vector<torch::optim::LRScheduler*>& schedulers,
                      const std::vector<unsigned>& counts);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_HOST_STATE_HOST_REWIND_H_
