// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/rank_talk.h"

#include <llvm/Support/xxhash.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/ranks/shard_bytes.h"

namespace stowage::runtime {

ir::Error RankTalk::agreeOn(const TrainingOptions& options, const ResumePoint& start) const {
  if (ranks_ == nullptr) return ir::success();
  const std::array<std::pair<const char*, int64_t>, 6> numbers{
      {{"the number of steps", options.steps},
       {"the seed", static_cast<int64_t>(options.seed)},
       {"the step to begin at", start.steps},
       {"the batch to begin at", start.dataPosition},
       {"the number of steps between checkpoints", options.save.empty() ? -1 : options.saveEvery},
       {"the number of steps between releases", options.releaseEvery}}};
  for (const auto& [what, number] : numbers) {
    if (ir::Error error = ranks_->between.agree(what, static_cast<uint64_t>(number))) return error;
  }
  return ir::success();
}

ir::Expected<double> RankTalk::meanOf(double own) const {
  if (ranks_ == nullptr) return own;
  std::array<uint8_t, sizeof(double)> bytes{};
  std::memcpy(bytes.data(), &own, sizeof(own));
  ir::Expected<std::vector<std::vector<uint8_t>>> each = gatherEach(ranks_->between, bytes);
  if (!each) return each.takeError();
  double sum = 0;
  for (const std::vector<uint8_t>& theirs : *each) {
    double value = 0;
    std::memcpy(&value, theirs.data(), sizeof(value));
    sum += value;
  }
  return sum / static_cast<double>(count());
}

ir::Expected<bool> RankTalk::anyOf(bool own) const {
  if (ranks_ == nullptr) return own;
  const uint8_t flag = own ? 1 : 0;
  ir::Expected<std::vector<std::vector<uint8_t>>> each = gatherEach(ranks_->between, flag);
  if (!each) return each.takeError();
  for (const std::vector<uint8_t>& theirs : *each) {
    if (theirs.front() != 0) return true;
  }
  return false;
}

ir::Error RankTalk::giveUpWith(ir::Error error) const {
  if (!error || ranks_ == nullptr) return error;
  const ir::PlanError problem = ir::takePayload(std::move(error));
  ranks_->giveUp(problem.text());
  return ir::makeError(problem);
}

}  // namespace stowage::runtime
