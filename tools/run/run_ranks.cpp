// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_ranks.h"

#include <fmt/format.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "tools/cli/progress.h"

namespace stowage::tools {

namespace {

ir::Error wrongUsage(std::string text) {
  return ir::makeError(ir::ErrorCode::kInvalidArgument, std::move(text));
}

}  // namespace

ir::Expected<std::optional<runtime::LaunchedRank>> findRank(int64_t ranks) {
  if (ranks == 1) return std::optional<runtime::LaunchedRank>();
  ir::Expected<std::optional<runtime::LaunchedRank>> launched = runtime::launchedRank();
  if (!launched || !*launched) return launched;
  const int64_t count = (*launched)->count;
  if (ranks != 0 && ranks != count) {
    return wrongUsage("--ranks " + std::to_string(ranks) + ": the launcher has started " +
                      std::to_string(count));
  }
  return launched;
}

// The GPUs that this host's ranks share are those that may be seen, in that order.
void seeOwnGpu(const std::optional<runtime::LaunchedRank>& launched) {
  if (!launched || launched->localCount < 2) return;
  const runtime::LaunchedRank& rank = *launched;
  constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";
  const char* seen = std::getenv(kVariable);
  std::string own = std::to_string(rank.localRank);
  if (seen != nullptr) {
    llvm::SmallVector<llvm::StringRef> names;
    llvm::StringRef(seen).split(names, ',');
    if (static_cast<size_t>(rank.localRank) >= names.size()) return;
    own = names[static_cast<size_t>(rank.localRank)].str();
  }
  ::setenv(kVariable, own.c_str(), /*overwrite=*/1);
}

void takeRank(const std::optional<runtime::LaunchedRank>& rank, RunFlags& flags) {
  seeOwnGpu(rank);
  if (!rank || rank->rank == 0) return;
  flags.quiet = true;
  flags.json = false;
  flags.speaks = false;
  flags.times = {};
}

ir::Error checkRanks(const planner::PlanFile& plan, int64_t found, const RunFlags& flags) {
  const int64_t planned = plan.graph.ranks;
  const std::string text = std::to_string(planned);
  if (planned == 1 && found > 1) {
    return wrongUsage("the plan is for one process, found " + std::to_string(found) +
                      " ranks: 'stowage plan --ranks " + std::to_string(found) +
                      "' makes one for them");
  }
  if (planned != found) {
    return wrongUsage("the plan is for " + text + " ranks, found " + std::to_string(found) +
                      ": --ranks " + text +
                      " starts them on this host, 'torchrun --no-python' "
                      "on one or several");
  }
  if (planned > 1 && flags.compare) {
    return wrongUsage(
        "--compare-unplanned: the plan is for several ranks, and there is no unplanned training of "
        "several to compare with");
  }
  return ir::success();
}

ir::Error RankMeeting::join() {
  if (!rank_) return ir::success();
  // One for a host: they share its terminal.
  const Waiting waiting(rank_->localRank == 0,
                        fmt::format("rank {} of {} waits for the others at {}:{}", rank_->rank,
                                    rank_->count, rank_->store.host, rank_->store.port));
  auto joined = runtime::LaunchedTraining::join(*rank_);
  if (!joined) return joined.takeError();
  joined_ = std::move(*joined);
  return ir::success();
}

VerbResult RankMeeting::end(VerbResult result) const {
  if (result || !rank_) return result;
  const ir::PlanError problem = ir::takePayload(result.takeError());
  const std::string& file = problem.location().file;
  if (joined_) joined_->ranks().giveUp((file.empty() ? "" : file + ": ") + problem.text());
  ir::PlanError own(problem.code(), "rank " + std::to_string(rank_->rank) + ": " + problem.text());
  own.notesOf(problem);
  return ir::makeError(std::move(own).at(problem.location()));
}

}  // namespace stowage::tools
