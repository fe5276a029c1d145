// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/launched_training.h"

#include <utility>

#include "runtime/launch/c10d_store.h"

namespace stowage::runtime {

namespace {

/// A store of which each communicator has keys of its own.
class StorePart : public RankStore {
 public:
  StorePart(RankStore& store, std::string prefix) : store_(store), prefix_(std::move(prefix)) {}
  ir::Error set(const std::string& key, const std::string& value) override {
    return store_.set(prefix_ + key, value);
  }
  ir::Expected<std::string> get(const std::string& key) override {
    return store_.get(prefix_ + key);
  }

 private:
  RankStore& store_;
  std::string prefix_;
};

}  // namespace

LaunchedTraining::LaunchedTraining(std::unique_ptr<RankStore> store, CommunicatorPtr inSteps,
                                   CommunicatorPtr between)
    : store_(std::move(store)),
      inSteps_(std::move(inSteps)),
      between_(std::move(between)),
      ranks_{.inSteps = *inSteps_, .between = *between_} {}

ir::Expected<std::unique_ptr<LaunchedTraining>> LaunchedTraining::join(
    const LaunchedRank& launched, const RankPatience& patience) {
  ir::Expected<std::unique_ptr<RankStore>> store = openStore(launched, patience.join);
  if (!store) return store.takeError();
  StorePart forSteps(**store, "steps/");
  ir::Expected<CommunicatorPtr> inSteps = joinLaunchedRanks(launched, forSteps, patience);
  if (!inSteps) return inSteps.takeError();
  StorePart forBetween(**store, "between/");
  ir::Expected<CommunicatorPtr> between = joinLaunchedRanks(launched, forBetween, patience);
  if (!between) return between.takeError();
  return std::unique_ptr<LaunchedTraining>(
      new LaunchedTraining(std::move(*store), std::move(*inSteps), std::move(*between)));
}

}  // namespace stowage::runtime
