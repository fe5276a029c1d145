// SPDX-License-Identifier: Apache-2.0
//
// All ranks of a training that a launcher started, met.
#ifndef STOWAGE_RUNTIME_LAUNCH_LAUNCHED_TRAINING_H_
#define STOWAGE_RUNTIME_LAUNCH_LAUNCHED_TRAINING_H_

#include <memory>

#include "ir/base/error.h"
#include "runtime/launch/launched_rank.h"
#include "runtime/ranks/rank_store.h"
#include "runtime/ranks/socket_ranks.h"
#include "runtime/ranks/training_ranks.h"

namespace stowage::runtime {

class LaunchedTraining {
 public:
  /// Waits for all of them. Errors: as openStore and joinRanks.
  static ir::Expected<std::unique_ptr<LaunchedTraining>> join(const LaunchedRank& launched,
                                                              const RankPatience& patience = {});
  const TrainingRanks& ranks() const { return ranks_; }

 private:
  using CommunicatorPtr = std::unique_ptr<Communicator>;
  LaunchedTraining(std::unique_ptr<RankStore> store, CommunicatorPtr inSteps,
                   CommunicatorPtr between);

  std::unique_ptr<RankStore> store_;  // rank 0 may serve it
  CommunicatorPtr inSteps_;
  CommunicatorPtr between_;
  TrainingRanks ranks_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_LAUNCH_LAUNCHED_TRAINING_H_
