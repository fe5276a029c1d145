// SPDX-License-Identifier: Apache-2.0
#include "runtime/ranks/local_ranks.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

namespace stowage::runtime {

namespace {

/// Where the threads meet. Counts are by rank, of collectives that it has come to and is done with.
struct Meeting {
  struct Rank {
    Collective collective;
    std::vector<llvm::ArrayRef<uint8_t>> toRanks;
    int64_t came = 0;
    int64_t done = 0;
    bool isGone = false;
    std::optional<std::string> gaveUp;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Rank> ranks;
};

class LocalRank : public Communicator {
 public:
  LocalRank(int32_t rank, std::shared_ptr<Meeting> meeting, std::chrono::milliseconds patience)
      : Communicator(rank, static_cast<int32_t>(meeting->ranks.size())),
        meeting_(std::move(meeting)),
        patience_(patience) {}

  ~LocalRank() override {
    const std::lock_guard lock(meeting_->mutex);
    own().isGone = true;
    meeting_->changed.notify_all();
  }

  bool isAnyOver() override {
    const std::lock_guard lock(meeting_->mutex);
    const Meeting::Rank& self = own();
    return std::any_of(
        meeting_->ranks.begin(), meeting_->ranks.end(),
        [&](const Meeting::Rank& one) { return &one != &self && (one.isGone || one.gaveUp); });
  }

 protected:
  ir::Error exchange(const Collective& collective, llvm::ArrayRef<llvm::ArrayRef<uint8_t>> toRanks,
                     llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> fromRanks) override {
    std::unique_lock lock(meeting_->mutex);
    own().collective = collective;
    own().toRanks = toRanks.vec();
    const int64_t came = ++own().came;
    meeting_->changed.notify_all();
    for (int32_t i = 0; i < count(); ++i) {
      if (i == rank()) continue;
      if (ir::Error error = waitFor(lock, i, came)) return error;
      const Meeting::Rank& other = at(i);
      if (ir::Error error = checkSame(i, collective, other.collective)) return error;
      const llvm::ArrayRef<uint8_t> from = other.toRanks[static_cast<size_t>(rank())];
      if (from.empty()) continue;
      std::memcpy(fromRanks[static_cast<size_t>(i)].data(), from.data(), from.size());
    }
    own().done = came;
    meeting_->changed.notify_all();
    // The others read this rank's bytes until they are done. One that fails reads no more.
    meeting_->changed.wait(lock, [&] {
      for (const Meeting::Rank& one : meeting_->ranks) {
        if (one.done < came && !one.isGone && !one.gaveUp) return false;
      }
      return true;
    });
    return ir::success();
  }

  void tellOthers(const std::string& reason) override {
    const std::lock_guard lock(meeting_->mutex);
    own().gaveUp = reason;
    meeting_->changed.notify_all();
  }

 private:
  Meeting::Rank& at(int32_t rank) { return meeting_->ranks[static_cast<size_t>(rank)]; }
  Meeting::Rank& own() { return at(rank()); }

  ir::Error waitFor(std::unique_lock<std::mutex>& lock, int32_t rank, int64_t came) {
    const Meeting::Rank& other = at(rank);
    const bool isInTime = meeting_->changed.wait_for(
        lock, patience_, [&] { return other.came >= came || other.isGone || other.gaveUp; });
    if (other.came >= came) return ir::success();
    if (other.gaveUp) return rankError(rank, "gave up (" + *other.gaveUp + ")", own().collective);
    return rankError(rank, isInTime ? "is gone" : "is silent", own().collective);
  }

  std::shared_ptr<Meeting> meeting_;
  std::chrono::milliseconds patience_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> makeLocalRanks(int32_t count,
                                                          std::chrono::milliseconds patience) {
  auto meeting = std::make_shared<Meeting>();
  meeting->ranks.resize(static_cast<size_t>(count));
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int32_t i = 0; i < count; ++i) {
    ranks.push_back(std::make_unique<LocalRank>(i, meeting, patience));
  }
  return ranks;
}

}  // namespace stowage::runtime
