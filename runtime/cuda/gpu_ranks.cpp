// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/gpu_ranks.h"

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/nccl_ranks.h"
#include "runtime/cuda/peer_memory.h"
#include "runtime/cuda/peer_ranks.h"

namespace stowage::runtime {

namespace {

using std::chrono::steady_clock;

/// What the GPU has to do still may be done without a rank that has ended.
constexpr std::chrono::seconds kToFinish{5};
constexpr std::chrono::seconds kPatience{kPatienceSeconds};
constexpr std::chrono::milliseconds kBetweenLooks{100};
constexpr std::chrono::microseconds kNap{20};
constexpr std::chrono::microseconds kAwake{200};  // of a wait, before the thread naps

bool mayReadPeers() {
  const char* disabled = std::getenv("NCCL_P2P_DISABLE");
  return disabled == nullptr || std::string(disabled) == "0";
}

}  // namespace

ir::Expected<std::unique_ptr<GpuRanks>> GpuRanks::join(const TrainingRanks& ranks,
                                                       const DeviceArena& arena) {
  ir::Expected<bool> mayAll = ranks.between.isOnAll(mayReadPeers());
  if (!mayAll) return mayAll.takeError();
  if (*mayAll) {
    ir::Expected<std::unique_ptr<PeerRanks>> peers = PeerRanks::join(ranks, arena);
    if (!peers) return peers.takeError();
    if (*peers) return std::move(*peers);
  }
  ir::Expected<std::unique_ptr<NcclRanks>> nccl = NcclRanks::join(ranks);
  if (!nccl) return nccl.takeError();
  return std::move(*nccl);
}

ir::Error GpuRanks::vote(ir::Error own) const {
  const bool isWell = !own;
  ir::Expected<bool> all = ranks_.between.isOnAll(isWell);
  if (!isWell) {
    if (!all) dropError(all.takeError());
    return own;
  }
  if (!all) return all.takeError();
  if (*all) return ir::success();
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       "another rank could not do the same, and says why");
}

ir::Error GpuRanks::wait(llvm::function_ref<cudaError_t()> query, const char* what) {
  const steady_clock::time_point begin = steady_clock::now();
  steady_clock::time_point looked = begin;
  // A long step is none that stands still: half of the patience each without a word.
  steady_clock::time_point heard = begin;
  std::optional<std::vector<uint32_t>> toldBefore;
  std::optional<steady_clock::time_point> overSince;
  cudaError_t status = query();
  for (; status == cudaErrorNotReady; status = query()) {
    const steady_clock::time_point now = steady_clock::now();
    if (now - begin > kAwake) std::this_thread::sleep_for(kNap);
    if (now - looked < kBetweenLooks) continue;
    looked = now;
    if (!ended_) {
      if (!overSince && ranks_.inSteps.isAnyOver()) overSince = now;
      if (overSince && now - *overSince > kToFinish) {
        // Nobody else talks there, so it finds who is over, and why.
        ir::Error over = ranks_.inSteps.agree("the end", 0);
        if (over) ended_ = ir::takePayload(std::move(over));
      } else if (now - heard > kPatience / 2) {
        heard = now;
        std::vector<uint32_t> told = this->told();
        const bool isSilent = toldBefore && *toldBefore == told;
        toldBefore = std::move(told);
        if (!isSilent) continue;
        ended_ =
            ir::PlanError(ir::ErrorCode::kEnvironment,
                          "the GPU has waited for the other ranks for " +
                              std::to_string(kPatienceSeconds) + " s, and none of them has ended");
      }
    }
    if (ended_) endWaits();
  }
  if (ended_) return ir::makeError(*ended_);
  return checkCuda(status, what);
}

}  // namespace stowage::runtime
