// SPDX-License-Identifier: Apache-2.0
#include "planner/search/choose_actions.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "planner/evaluate/copy_schedule.h"
#include "planner/evaluate/expand.h"
#include "planner/evaluate/load_tree.h"
#include "planner/problem/recompute_costs.h"
#include "planner/search/known_plan.h"
#include "planner/search/link_ledger.h"

namespace stowage::planner {

namespace {

using ir::GapAction;

constexpr int kRounds = 4;
constexpr int64_t kEarlyShare = 8;  // of the target may come back before it is used itself
constexpr int kLooks = 8;
constexpr int64_t kWorthwhile = 1000;  // of the step: a wait that is not worth a copy
constexpr int64_t kUnpriced = std::numeric_limits<int64_t>::max();

int64_t pricePerMebibyte(const RecomputeCost& cost) {
  const auto scaled =
      static_cast<__int128>(cost.time.value()) * (int64_t{1} << 20) / cost.bytes.value();
  return static_cast<int64_t>(std::min<__int128>(scaled, kUnpriced - 1));
}

// The walk. Heaps hold gaps that are open at the current position; entries that no longer apply are
// dropped when they surface.
class Walk {
  using HostEntry = std::tuple<int64_t, int64_t, int64_t>;  // next use, bytes, -gap
  using HostHeap = std::priority_queue<HostEntry>;

 public:
  Walk(const GapTable& table, const FixedActions& fixed, std::vector<int64_t> loads,
       const ChoiceRule& rule, int64_t mostEarly)
      : table_(table),
        fixed_(fixed),
        rule_(rule),
        mostEarly_(mostEarly),
        nodes_(static_cast<int64_t>(table.nodeCount())),
        actions_(fixed.actions),
        loads_(loads),
        host_(std::vector<int64_t>(table.nodeCount(), 0)),
        links_(table),
        stuck_(std::vector<int64_t>(table.nodeCount(), 0)),
        early_(std::vector<int64_t>(table.nodeCount(), 0)),
        hasPlace_(table.problem().lives.size(), false) {
    for (size_t i = 0; i < hasPlace_.size(); ++i) {
      const ir::StorageId id(i);
      const ir::Storage& storage = table.problem().graph.storage(id);
      if (storage.role == ir::Role::kInput || storage.output || table.isHostOnly(id)) holdPlace(id);
    }
    for (size_t g = 0; g < table.gaps().size(); ++g) {
      if (actions_[g] == GapAction::kHost) holdHostBytes(g);
    }
    for (const Gap& gap : table.gaps()) neededAt_.push_back(gap.end);
    openAt_.resize(table.nodeCount() + 1);
    for (size_t i = 0; i < hasPlace_.size(); ++i) makeWayForInput(ir::StorageId(i));
    for (size_t g = 0; g < table.gaps().size(); ++g) {
      const Gap& gap = table.gaps()[g];
      if (fixed.isFixed[g] || actions_[g] != GapAction::kKeep || !gap.live) continue;
      if (!gap.mayHost && !gap.mayRecompute) continue;
      openAt_[static_cast<size_t>(gap.begin + 1)].push_back(g);
      // Open since the step before.
      if (gap.end > nodes_) open(g, 0, gap.end - nodes_);
    }
  }

  Actions walk() {
    for (int64_t position = 0; position < nodes_; ++position) {
      for (const size_t g : openAt_[static_cast<size_t>(position)]) {
        open(g, position, table_.gaps()[g].end);
      }
      while (loads_.at(position) > rule_.target && giveUpOne(position)) {
      }
    }
    return std::move(actions_);
  }

  std::vector<int64_t> loads() const {
    std::vector<int64_t> result;
    for (int64_t i = 0; i < nodes_; ++i) result.push_back(loads_.at(i));
    return result;
  }

 private:
  void open(size_t g, int64_t position, int64_t end) {
    const Gap& gap = table_.gaps()[g];
    if (gap.mayHost) {
      const auto origin = static_cast<size_t>(links_.origin(g, position));
      hosts_[origin].push({end, table_.bytes(gap.storage), -static_cast<int64_t>(g)});
    }
    if (!gap.mayRecompute) return;
    if (const std::optional<RecomputeCost> cost = findRecomputeCost(table_, g, gap.end)) {
      recomputes_.push({-pricePerMebibyte(*cost), end, -static_cast<int64_t>(g)});
    }
  }

  bool isOpen(size_t g, int64_t end, int64_t position) const {
    return actions_[g] == GapAction::kKeep && end > position;
  }

  // An input that is used to the end of a step holds the place of the next step's, so that compute
  // waits for that one's copy, unless it is away in between.
  void makeWayForInput(ir::StorageId id) {
    const std::vector<ir::Touch>& touches = table_.problem().lives[id.index()].touches;
    if (table_.problem().graph.storage(id).role != ir::Role::kInput || touches.size() < 2) return;
    int64_t slack = 0;  // compute between its last use and the next step's first
    int64_t all = 0;
    for (int64_t node = 0; node < nodes_; ++node) {
      const int64_t time = table_.nodeTime(static_cast<size_t>(node));
      all += time;
      if (node < touches.front().position || node > touches.back().position) slack += time;
    }
    const int64_t copy = copyTime(table_.problem().costs.links.hostToDevice, table_.bytes(id));
    if (copy - slack < all / kWorthwhile) return;
    size_t longest = table_.gapIndex(id, 0);
    for (size_t k = 1; k + 1 < touches.size(); ++k) {
      const size_t g = table_.gapIndex(id, k);
      const auto length = [&](size_t gap) {
        return table_.gaps()[gap].end - table_.gaps()[gap].begin;
      };
      if (length(g) > length(longest)) longest = g;
    }
    const Gap& gap = table_.gaps()[longest];
    if (!gap.mayHost || !gap.live || fixed_.isFixed[longest]) return;
    actions_[longest] = GapAction::kHost;
    links_.book(longest, gap.begin, gap.end);
    free(longest);
  }

  // A gap whose bytes could go to the host, and what compute would wait for that.
  struct Candidate {
    size_t gap = 0;
    int64_t end = 0;
    int64_t wait = kUnpriced;
    bool isBefore(const Candidate& other) const {
      if (wait != other.wait) return wait < other.wait;
      return end != other.end ? end > other.end : gap < other.gap;
    }
  };

  bool giveUpOne(int64_t position) {
    dropStale(position);
    const std::optional<Candidate> host = findHost(position);
    int64_t price = rule_.recomputePrice;
    if (host && price >= 0) price = std::max(price, waitPerMebibyte(*host));
    const bool isCheap = !recomputes_.empty() && -std::get<0>(recomputes_.top()) <= price;
    if (isCheap || (!host && !recomputes_.empty())) {
      const auto g = static_cast<size_t>(-std::get<2>(recomputes_.top()));
      recomputes_.pop();
      recompute(g, position);
      return true;
    }
    if (!host) return false;
    actions_[host->gap] = GapAction::kHost;
    holdHostBytes(host->gap);
    links_.book(host->gap, position, host->end);
    free(host->gap);
    return true;
  }

  int64_t waitPerMebibyte(const Candidate& host) const {
    const auto scaled = static_cast<__int128>(host.wait) * (int64_t{1} << 20) /
                        table_.bytes(table_.gaps()[host.gap].storage);
    return static_cast<int64_t>(std::min<__int128>(scaled, kUnpriced - 1));
  }

  // Furthest next use first, but rather what the links have time for. Of each origin a few are
  // looked at: what is next in line needs the links at nearly the same time.
  std::optional<Candidate> findHost(int64_t position) {
    std::optional<Candidate> best;
    for (HostHeap& heap : hosts_) {
      llvm::SmallVector<HostEntry, kLooks> seen;
      for (int look = 0; look < kLooks && !heap.empty(); ++look) {
        const HostEntry entry = heap.top();
        const auto [end, bytes, negative] = entry;
        const auto g = static_cast<size_t>(-negative);
        heap.pop();
        if (!isOpen(g, end, position) || neededAt_[g] <= position || !hasHostRoom(g)) {
          --look;
          continue;
        }
        seen.push_back(entry);
        const Candidate next{g, end, links_.wait(g, position, end)};
        if (!best || next.isBefore(*best)) best = next;
        if (next.wait == 0) break;
      }
      for (const HostEntry& entry : seen) heap.push(entry);
    }
    return best;
  }

  // Bytes on the host, from the node before a gap to the one after; what is written in every step
  // or comes from outside has a place there for good.
  bool isForGood(ir::StorageId id) const {
    return table_.problem().graph.storage(id).persistent || hasPlace_[id.index()];
  }
  void holdPlace(ir::StorageId id) {
    if (hasPlace_[id.index()]) return;
    hasPlace_[id.index()] = true;
    host_.add(0, nodes_, table_.bytes(id));
  }
  void holdHostBytes(size_t g) {
    const Gap& gap = table_.gaps()[g];
    if (isForGood(gap.storage)) {
      holdPlace(gap.storage);
    } else {
      host_.add(gap.begin, gap.end + 1, table_.bytes(gap.storage));
    }
  }
  bool hasHostRoom(size_t g) const {
    const Gap& gap = table_.gaps()[g];
    if (hasPlace_[gap.storage.index()]) return true;
    const bool forGood = isForGood(gap.storage);
    const int64_t held = forGood ? host_.highest(0, nodes_) : host_.highest(gap.begin, gap.end + 1);
    return held + table_.bytes(gap.storage) <= rule_.hostTarget;
  }

  void dropStale(int64_t position) {
    while (!recomputes_.empty() && !isOpen(static_cast<size_t>(-std::get<2>(recomputes_.top())),
                                           std::get<1>(recomputes_.top()), position)) {
      recomputes_.pop();
    }
  }

  void free(size_t g) {
    const Gap& gap = table_.gaps()[g];
    loads_.add(gap.begin + 1, neededAt_[g], -table_.bytes(gap.storage));
  }

  // A recompute brings its inputs back before they are used themselves, and the inputs of those.
  // Only so much may come back at one node, else dropping everything would bring everything back at
  // once.
  void recompute(size_t g, int64_t position) {
    const Gap& gap = table_.gaps()[g];
    const int64_t at = neededAt_[g];
    if (at <= position) return;
    llvm::SmallVector<size_t, 8> back;  // what was given up and comes back for it
    llvm::SmallVector<size_t, 8> kept;  // what is there anyway
    llvm::SmallVector<size_t, 4> extended;
    int64_t bytes = at < gap.end ? table_.bytes(gap.storage) : 0;
    if (!collectInputs(g, at, back, kept, extended)) return;
    for (size_t i = 0; i < back.size(); ++i) {
      bytes += table_.bytes(table_.gaps()[back[i]].storage);
      const bool isMadeAgain = actions_[back[i]] == GapAction::kRecompute;
      if (isMadeAgain && !collectInputs(back[i], at, back, kept, extended)) return;
    }
    int64_t last = gap.end;
    for (const size_t h : back) last = std::max(last, neededAt_[h] - (inFrame(h, at) - at));
    if (early_.highest(at, last) + bytes > mostEarly_) return;
    int64_t stuck = 0;
    int64_t end = at;
    for (const size_t h : kept) {
      if (neededAt_[h] <= inFrame(h, at)) continue;
      stuck += table_.bytes(table_.gaps()[h].storage);
      end = std::max(end, neededAt_[h] - (inFrame(h, at) - at));
    }
    if (stuck_.highest(at, end) + stuck > 4 * mostEarly_) return;
    for (const size_t h : extended) {
      // Where the walk has been, nothing can make room any more.
      const int64_t from = table_.gaps()[h].begin + 1;
      const int64_t bytesOfIt = table_.bytes(table_.gaps()[h].storage);
      if (loads_.highest(from, std::min(at, position)) + bytesOfIt > rule_.target) return;
    }
    const int64_t time = table_.chainTime(gap.storage, g - table_.gapIndex(gap.storage, 0));
    early_.add(at, gap.end, at < gap.end ? table_.bytes(gap.storage) : 0);
    actions_[g] = GapAction::kRecompute;
    links_.lengthen(at, time);
    free(g);
    for (const size_t h : back) bringForward(h, at);
    for (const size_t h : kept) {
      const int64_t from = inFrame(h, at);
      if (from < neededAt_[h]) {
        stuck_.add(from, neededAt_[h], table_.bytes(table_.gaps()[h].storage));
        neededAt_[h] = from;
      }
    }
    for (const size_t h : extended) {
      const Gap& dead = table_.gaps()[h];
      loads_.add(dead.begin + 1, at, table_.bytes(dead.storage));
    }
  }

  bool collectInputs(size_t g, int64_t at, llvm::SmallVectorImpl<size_t>& back,
                     llvm::SmallVectorImpl<size_t>& kept,
                     llvm::SmallVectorImpl<size_t>& extended) const {
    const std::optional<RecomputeCost> cost = findRecomputeCost(table_, g, at);
    if (!cost) return false;
    for (const size_t h : cost->open) {
      const bool isBack = neededAt_[h] <= inFrame(h, at);
      if (actions_[h] == GapAction::kKeep) {
        kept.push_back(h);
      } else if (!isBack && !llvm::is_contained(back, h)) {
        back.push_back(h);
      }
    }
    extended.append(cost->extended.begin(), cost->extended.end());
    return true;
  }

  // A position of this step as the gap counts it: its end may lie in the next.
  int64_t inFrame(size_t g, int64_t at) const {
    return at > table_.gaps()[g].begin ? at : at + nodes_;
  }
  void bringForward(size_t g, int64_t at) {
    const int64_t from = inFrame(g, at);
    loads_.add(from, neededAt_[g], table_.bytes(table_.gaps()[g].storage));
    early_.add(from, neededAt_[g], table_.bytes(table_.gaps()[g].storage));
    neededAt_[g] = from;
  }

  const GapTable& table_;
  const FixedActions& fixed_;
  ChoiceRule rule_;
  int64_t mostEarly_;  // bytes that may be back before their own use
  int64_t nodes_;
  Actions actions_;
  LoadTree loads_;
  LoadTree host_;
  LinkLedger links_;
  LoadTree stuck_;  // bytes that may not leave any more, for a recompute has read them
  LoadTree early_;  // bytes that are back before their own use
  std::vector<int64_t> neededAt_;  // by gap: its end, or an earlier recompute that needs it
  std::vector<bool> hasPlace_;     // by storage: on the host for the whole step
  std::vector<std::vector<size_t>> openAt_;  // gaps whose first inner position it is
  std::array<HostHeap, 3> hosts_;            // by origin
  std::priority_queue<std::tuple<int64_t, int64_t, int64_t>> recomputes_;  // -price, next use, -gap
};

}  // namespace

ir::Expected<ActionChooser> ActionChooser::make(const GapTable& table, FixedActions fixed) {
  ActionChooser chooser(table, std::move(fixed));
  ir::Expected<Expansion> expansion = expand(table, chooser.fixed_.actions);
  if (!expansion) return expansion.takeError();
  chooser.loads_ = computeNodeLoads(table, chooser.fixed_.actions);
  return chooser;
}

Choice ActionChooser::choose(const ChoiceRule& rule) const {
  std::vector<int64_t> correction(loads_.size(), 0);
  Choice best{.actions = fixed_.actions};
  // What comes back early cannot leave again, so when it does not fit there may be less of that.
  int64_t mostEarly = rule.target / kEarlyShare;
  for (int round = 0; round < kRounds; ++round, mostEarly /= 4) {
    std::vector<int64_t> loads = loads_;
    for (size_t i = 0; i < loads.size(); ++i) loads[i] += correction[i];
    Walk walk(*table_, fixed_, std::move(loads), rule, mostEarly);
    Actions actions = walk.walk();
    const std::vector<int64_t> seen = walk.loads();
    const std::vector<int64_t> real = computeNodeLoads(*table_, actions);
    if (real.empty()) return best;
    best = {.actions = std::move(actions), .bytes = *std::max_element(real.begin(), real.end())};
    bool fits = true;
    for (size_t i = 0; i < real.size(); ++i) {
      if (real[i] <= rule.target) continue;
      fits = false;
      correction[i] += std::max<int64_t>(0, real[i] - seen[i]);
    }
    if (fits) break;
  }
  return best;
}

}  // namespace stowage::planner
