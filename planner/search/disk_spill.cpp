// SPDX-License-Identifier: Apache-2.0
#include "planner/search/disk_spill.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <utility>

#include "planner/evaluate/load_tree.h"

namespace stowage::planner {

namespace {

// Of the host limit for the rings, as divisors; with all of it, all goes to disk that may.
constexpr int64_t kRingShares[] = {32, 8, 4, 2, 1};

/// What a storage would cost the disk in a step, and when it is on the host.
struct Candidate {
  ir::StorageId storage;
  int64_t writes = 0;  // times in a step
  int64_t reads = 0;
  ir::TickRange there;
};

class Spill {
 public:
  Spill(const GapTable& table, const FixedActions& fixed, const KnownPlan& plan)
      : table_(table), plan_(plan) {
    ir::Expected<Draft> draft = draftTimetable(table, plan.actions, plan.prefetchLimit);
    if (!draft) {
      llvm::consumeError(draft.takeError());
      return;
    }
    draft_ = std::move(*draft);
    collect(fixed);
    llvm::stable_sort(candidates_, [&](const Candidate& a, const Candidate& b) {
      return std::pair(timePerByte(a), -bytes(a)) < std::pair(timePerByte(b), -bytes(b));
    });
  }

  std::optional<KnownPlan> run(int64_t& least) {
    const Limits& limits = table_.problem().limits;
    const Actions all = leaveOnHost(0);
    std::optional<KnownPlan> best;
    for (const int64_t share : kRingShares) {
      const Actions actions = leaveOnHost(limits.host.value() - limits.host.value() / share);
      if (actions == last_) continue;
      last_ = actions;
      const Useful useful{.time = best ? best->time : INT64_MAX};
      const Tried tried = tryActions(table_, actions, plan_.prefetchLimit, useful);
      if (!tried.plan || tried.plan->diskPeak > limits.disk.value()) continue;
      // With this limit it is tried again, and fits.
      if (actions == all) least = std::min(least, tried.plan->hostPeak);
      if (tried.plan->hostPeak > limits.host.value()) continue;
      if (!best || tried.plan->time < best->time) best = tried.plan;
    }
    return best;
  }

 private:
  int64_t bytes(const Candidate& one) const { return table_.bytes(one.storage); }

  // Nanoseconds of both engines for a mebibyte that is not on the host.
  int64_t timePerByte(const Candidate& one) const {
    const ir::LinkModel& links = table_.problem().costs.links;
    const Bytes unit(int64_t{1} << 20);
    return one.writes * transferTime(unit, links.diskWrite.bandwidth).value() +
           one.reads * transferTime(unit, links.diskRead.bandwidth).value();
  }

  void collect(const FixedActions& fixed) {
    const Expansion& x = draft_.expansion;
    std::vector<Candidate> all(x.onDisk.size());
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].storage = ir::StorageId(i);
      all[i].there = draft_.order.hosts[i];
    }
    const auto storageOf = [&](int32_t range) {
      return x.liveRanges[static_cast<size_t>(range)].storage.index();
    };
    for (const Offload& one : x.offloads) ++all[storageOf(one.liveRange)].writes;
    for (const Prefetch& one : x.prefetches) ++all[storageOf(one.liveRange)].reads;
    for (const Candidate& one : all) {
      if (one.reads > 0 && maySpill(one.storage, fixed)) candidates_.push_back(one);
    }
  }

  bool maySpill(ir::StorageId storage, const FixedActions& fixed) const {
    bool isAny = false;
    for (size_t k = 0; k < table_.gapCount(storage); ++k) {
      const size_t g = table_.gapIndex(storage, k);
      if (plan_.actions[g] != ir::GapAction::kHost) continue;
      if (fixed.isFixed[g] || !table_.gaps()[g].mayDisk) return false;
      isAny = true;
    }
    return isAny;
  }

  /// The plan's actions, with storages sent to disk until others need at most `host` bytes.
  Actions leaveOnHost(int64_t host) const {
    std::vector<int64_t> none(static_cast<size_t>(draft_.order.period), 0);
    LoadTree loads(none);
    for (size_t i = 0; i < draft_.order.hosts.size(); ++i) {
      const ir::TickRange& there = draft_.order.hosts[i];
      loads.add(there.begin, there.end, table_.bytes(ir::StorageId(i)));
    }
    Actions actions = plan_.actions;
    for (const Candidate& one : candidates_) {
      if (loads.highest(one.there.begin, one.there.end) <= host) continue;
      loads.add(one.there.begin, one.there.end, -bytes(one));
      for (size_t k = 0; k < table_.gapCount(one.storage); ++k) {
        ir::GapAction& action = actions[table_.gapIndex(one.storage, k)];
        if (action == ir::GapAction::kHost) action = ir::GapAction::kDisk;
      }
    }
    return actions;
  }

  const GapTable& table_;
  const KnownPlan& plan_;
  Draft draft_;
  std::vector<Candidate> candidates_;  // the cheapest for the disk first
  Actions last_;
};

}  // namespace

std::optional<KnownPlan> spillToDisk(const GapTable& table, const FixedActions& fixed,
                                     const KnownPlan& plan, int64_t& least) {
  return Spill(table, fixed, plan).run(least);
}

int64_t leastDiskTime(const Problem& problem, int64_t bytes) {
  if (bytes <= 0) return 0;
  return transferTime(Bytes(bytes), problem.costs.links.diskRead.bandwidth).value();
}

}  // namespace stowage::planner
