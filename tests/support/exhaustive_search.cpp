// SPDX-License-Identifier: Apache-2.0
#include "tests/support/exhaustive_search.h"

#include <algorithm>
#include <bit>
#include <map>
#include <queue>
#include <unordered_map>
#include <vector>

#include "ir/graph/op_table.h"

namespace stowage::tests {

namespace {

using Mask = uint32_t;
constexpr int8_t kNone = -1;

Mask bit(int item) { return Mask{1} << item; }

struct State {
  int8_t next = 0;  // original node that starts next
  int8_t run = kNone;
  int8_t runLeft = 0;
  int8_t recomputeOf = kNone;  // item that a recompute makes; kNone: an original runs
  int8_t out = kNone, outLeft = 0;
  int8_t in = kNone, inLeft = 0;
  Mask device = 0;  // has bytes there: valid, or being written by the node that runs
  Mask host = 0;    // the current version is there
  Mask ahead = 0;   // inputs of which what is there or under way is the next step's

  uint64_t key() const {
    uint64_t k = 0;
    const auto add = [&](int value, int bits) {
      k = (k << bits) | static_cast<uint64_t>(value + 1);
    };
    add(next, 4);
    add(run, 4);
    add(runLeft, 5);
    add(recomputeOf, 3);
    add(out, 3);
    add(outLeft, 5);
    add(in, 3);
    add(inLeft, 5);
    return (k << 15) | (uint64_t{ahead} << 10) | (uint64_t{device} << 5) | host;
  }
};

class Search {
 public:
  Search(const SmallStep& step, int budget) : step_(step), budget_(budget) {
    items_ = static_cast<int>(step.items.size());
    nodes_ = static_cast<int>(step.nodes.size());
    deriveFacts();
  }

  Verdict run(int64_t period) {
    std::vector<std::pair<State, int64_t>> wave = startStates();
    std::map<uint64_t, int64_t> best;
    for (const auto& [state, time] : wave) best[state.key()] = time;
    int64_t below = -4 * period;
    for (const SmallItem& item : step_.items) {
      below -= 8 * kUnitTime * item.units * (step_.outPerUnit + step_.inPerUnit);
    }
    bool any = false;
    for (size_t round = 0; !wave.empty(); ++round) {
      std::vector<std::pair<State, int64_t>> reached = runOneStep(wave);
      wave.clear();
      any = any || !reached.empty();
      for (auto& [state, time] : reached) {
        const int64_t reduced = time - period;
        const auto [at, isNew] = best.try_emplace(state.key(), reduced);
        if (!isNew && at->second <= reduced) continue;
        at->second = reduced;
        if (reduced < below || round > best.size() + 2) return Verdict::kFaster;
        wave.push_back({state, reduced});
      }
    }
    return any ? Verdict::kNotFaster : Verdict::kNoSchedule;
  }

 private:
  // --- facts of the step ---------------------------------------------------------------------

  const SmallItem& item(int i) const { return step_.items[static_cast<size_t>(i)]; }
  const SmallNode& node(int k) const { return step_.nodes[static_cast<size_t>(k)]; }
  static bool has(const std::vector<int>& list, int i) {
    return std::find(list.begin(), list.end(), i) != list.end();
  }
  bool isInput(int i) const { return item(i).role == ir::Role::kInput; }
  static Mask maskOf(const std::vector<int>& list) {
    Mask mask = 0;
    for (const int i : list) mask |= bit(i);
    return mask;
  }
  Mask written(int k) const { return maskOf(node(k).updates) | maskOf(node(k).results); }
  bool writesWhole(int k, int i) const {
    return has(node(k).results, i) || (node(k).whole && has(node(k).updates, i));
  }
  bool isRecomputable(int k) const {
    if (!ir::lookUpOp(node(k).op).recomputable) return false;
    for (const int i : node(k).updates) {
      if (isPersistent(item(i))) return false;
    }
    return true;
  }

  void deriveFacts() {
    for (int i = 0; i < items_; ++i) inputs_ |= isInput(i) ? bit(i) : 0;
    live_.assign(static_cast<size_t>(nodes_) + 1, 0);
    useful_.assign(static_cast<size_t>(nodes_) + 1, 0);
    for (int next = 0; next <= nodes_; ++next) {
      Mask live = 0;
      for (int i = 0; i < items_; ++i) live |= isNeeded(i, next) ? bit(i) : 0;
      live_[static_cast<size_t>(next)] = live;
      useful_[static_cast<size_t>(next)] = closure(live, next);
    }
  }

  bool isNeeded(int i, int next) const {
    const int end = isPersistent(item(i)) ? next + nodes_ : nodes_;
    for (int k = next; k < end; ++k) {
      const int at = k % nodes_;
      if (has(node(at).reads, i)) return true;
      if (writesWhole(at, i)) return false;
    }
    // Weights that nobody touches and state that is written alone must survive.
    return isPersistent(item(i));
  }

  // Nodes that make item i as it is before node `next`, first to last. Empty: item i is not
  // recomputable, or something that it was made from has changed since.
  std::vector<int> chain(int i, int next) const {
    std::vector<int> nodes;
    if (item(i).role != ir::Role::kActivation) return nodes;
    for (int k = next; k-- > 0;) {
      if ((written(k) & bit(i)) == 0) continue;
      if (!isRecomputable(k) || haveInputsChanged(k, i, next)) return {};
      nodes.insert(nodes.begin(), k);
      if (has(node(k).results, i)) return nodes;
    }
    return {};
  }
  bool haveInputsChanged(int k, int made, int next) const {
    for (const int input : node(k).reads) {
      if (input == made) continue;
      for (int later = k; later < next; ++later) {
        if ((written(later) & bit(input)) != 0) return true;
      }
    }
    return false;
  }
  Mask chainInputs(int i, const std::vector<int>& nodes) const {
    Mask inputs = 0;
    for (const int k : nodes) inputs |= maskOf(node(k).reads);
    return inputs & ~bit(i);
  }
  Mask closure(Mask wanted, int next) const {
    for (int round = 0; round < items_; ++round) {
      for (int i = 0; i < items_; ++i) {
        if ((wanted & bit(i)) != 0) wanted |= chainInputs(i, chain(i, next));
      }
    }
    return wanted;
  }

  // --- a step of the cycle -------------------------------------------------------------------

  std::vector<std::pair<State, int64_t>> startStates() const {
    std::vector<std::pair<State, int64_t>> states;
    for (Mask device = 0; device < bit(items_); ++device) {
      for (Mask host = 0; host < bit(items_); ++host) {
        State state{.device = device, .host = host};
        bool legal = bytesOf(device) <= budget_;
        for (int i = 0; i < items_; ++i) {
          const bool onDevice = (device & bit(i)) != 0;
          const bool onHost = (host & bit(i)) != 0;
          const bool isNeededNow = (live_[0] & bit(i)) != 0;
          if (isInput(i)) {
            legal = legal && onHost;
          } else if (isPersistent(item(i)) && isNeededNow) {
            legal = legal && (onHost || onDevice);
          } else {
            legal = legal && !onHost && !onDevice;
          }
        }
        if (legal) states.push_back({state, 0});
      }
    }
    return states;
  }

  std::vector<std::pair<State, int64_t>> runOneStep(
      const std::vector<std::pair<State, int64_t>>& starts) {
    best_.clear();
    queue_ = {};
    for (const auto& [state, time] : starts) push(state, time);
    std::vector<std::pair<State, int64_t>> ends;
    while (!queue_.empty()) {
      const auto [time, index] = queue_.top();
      queue_.pop();
      const State state = pool_[index];
      if (best_.at(state.key()) < time) continue;
      if (state.next == nodes_ && state.run == kNone) {
        State boundary = state;
        if (crossBoundary(boundary)) ends.push_back({boundary, time});
        continue;
      }
      expand(state, time);
    }
    pool_.clear();
    return ends;
  }

  // What may not or need not run on into the next step is a schedule that is looked at elsewhere.
  bool crossBoundary(State& state) const {
    for (int i = 0; i < items_; ++i) {
      if (isPersistent(item(i)) || (state.ahead & bit(i)) != 0) continue;
      if (state.out == i || state.in == i) return false;
      state.device &= ~bit(i);
      if (!isInput(i)) state.host &= ~bit(i);
    }
    state.ahead = 0;
    state.next = 0;
    return true;
  }

  void push(State state, int64_t time) {
    forget(state);
    const auto [at, isNew] = best_.try_emplace(state.key(), time);
    if (!isNew && at->second <= time) return;
    at->second = time;
    pool_.push_back(state);
    queue_.push({time, pool_.size() - 1});
  }

  // Bytes that nobody can want any more.
  void forget(State& state) const {
    Mask wanted = useful_[static_cast<size_t>(state.next)] | inUse(state) | state.ahead;
    if (state.out != kNone) wanted |= bit(state.out);
    if (state.in != kNone) wanted |= bit(state.in);
    state.device &= wanted;
    state.host &= useful_[static_cast<size_t>(state.next)] | inputs_;
  }

  Mask inUse(const State& state) const {
    if (state.run == kNone) return 0;
    if (state.recomputeOf == kNone) {
      Mask mask = maskOf(node(state.run).reads) | written(state.run);
      return mask & state.device;
    }
    const std::vector<int> nodes = chain(state.recomputeOf, state.next);
    Mask mask = chainInputs(state.recomputeOf, nodes);
    for (const int k : nodes) mask |= written(k);
    return mask & state.device;
  }
  Mask beingWritten(const State& state) const {
    if (state.run == kNone) return 0;
    if (state.recomputeOf == kNone) return written(state.run);
    Mask mask = 0;
    for (const int k : chain(state.recomputeOf, state.next)) mask |= written(k);
    return mask;
  }

  int bytesOf(Mask mask) const {
    int units = 0;
    for (int i = 0; i < items_; ++i) units += (mask & bit(i)) != 0 ? item(i).units : 0;
    return units;
  }
  int temporaries(const State& state) const {
    if (state.run == kNone) return 0;
    int most = 0;
    if (state.recomputeOf == kNone) return node(state.run).temporary;
    for (const int k : chain(state.recomputeOf, state.next))
      most = std::max(most, node(k).temporary);
    return most;
  }
  int used(const State& state) const {
    Mask there = state.device;
    if (state.in != kNone) there |= bit(state.in);
    return bytesOf(there) + temporaries(state);
  }

  void expand(const State& state, int64_t time) {
    if (state.run == kNone) {
      startOriginal(state, time);
      for (int i = 0; i < items_; ++i) startRecompute(state, time, i);
    }
    for (int i = 0; i < items_; ++i) {
      startOffload(state, time, i);
      startPrefetch(state, time, i);
    }
    advance(state, time);
  }

  bool isValid(const State& state, Mask items) const {
    if (state.in != kNone) items |= (items & bit(state.in)) != 0 ? Mask{1} << 31 : 0;
    return (state.device & items) == items;
  }

  void startOriginal(const State& state, int64_t time) {
    const int k = state.next;
    const SmallNode& started = node(k);
    const Mask reads = maskOf(started.reads);
    if (!isValid(state, reads)) return;
    if (state.out != kNone && (written(k) & bit(state.out)) != 0) return;
    if (state.in != kNone && (written(k) & bit(state.in)) != 0) return;
    State after = state;
    after.next = static_cast<int8_t>(k + 1);
    after.run = static_cast<int8_t>(k);
    after.runLeft = static_cast<int8_t>(started.time);
    after.device |= written(k);
    after.host &= ~written(k);
    pushFitting(after, time, reads | written(k));
    const ir::OpInfo& info = ir::lookUpOp(started.op);
    if (info.inPlaceOperand < 0 || started.reads.size() != 1 || started.results.size() != 1) return;
    const int operand = started.reads[0];
    if (isPersistent(item(operand)) || state.out == operand) return;
    if (item(operand).units != item(started.results[0]).units) return;
    after.device &= ~bit(operand);
    if (canLose(after, operand)) pushFitting(after, time, written(k));
  }

  void startRecompute(const State& state, int64_t time, int i) {
    const Mask wanted = useful_[static_cast<size_t>(state.next)];
    if ((wanted & bit(i)) == 0 || (state.device & bit(i)) != 0 || state.in == i) return;
    const std::vector<int> nodes = chain(i, state.next);
    const Mask inputs = chainInputs(i, nodes);
    if (nodes.empty() || !isValid(state, inputs) || (inputs & state.ahead) != 0) return;
    State after = state;
    after.run = static_cast<int8_t>(nodes.front());
    after.recomputeOf = static_cast<int8_t>(i);
    int left = 0;
    for (const int k : nodes) left += node(k).time;
    after.runLeft = static_cast<int8_t>(left);
    // Other results of the first node are made as well, in the place of what is there if that is
    // the same. Else they need bytes beside it while the recompute lasts.
    const Mask byproducts = written(nodes.front()) & ~bit(i);
    Mask kept = bit(i);
    int beside = 0;
    for (int other = 0; other < items_; ++other) {
      if ((byproducts & bit(other)) == 0) continue;
      const bool isCurrent = chain(other, state.next) == std::vector<int>{nodes.front()};
      const bool mayReplace = isCurrent && state.in != other && state.out != other;
      if (mayReplace) kept |= bit(other);
      if (!mayReplace) beside += item(other).units;
    }
    after.device |= kept;
    pushFitting(after, time, inputs | kept, beside);
  }

  bool canLose(const State& state, int i) const {
    if ((live_[static_cast<size_t>(state.next)] & bit(i)) == 0) return true;
    return (state.host & bit(i)) != 0 || !chain(i, state.next).empty();
  }

  // With nothing dropped if it fits, else with every smallest set of items that makes it fit.
  void pushFitting(const State& state, int64_t time, Mask pinned, int beside = 0) {
    const int excess = used(state) + beside - budget_;
    if (excess <= 0) {
      push(state, time);
      return;
    }
    Mask mayGo = state.device & ~pinned & ~inUse(state);
    if (state.out != kNone) mayGo &= ~bit(state.out);
    for (int i = 0; i < items_; ++i) {
      if ((mayGo & bit(i)) != 0 && !canLose(state, i)) mayGo &= ~bit(i);
    }
    for (Mask gone = mayGo; gone != 0; gone = (gone - 1) & mayGo) {
      if (bytesOf(gone) < excess || !isSmallest(gone, excess)) continue;
      State after = state;
      after.device &= ~gone;
      push(after, time);
    }
  }
  bool isSmallest(Mask gone, int excess) const {
    for (int i = 0; i < items_; ++i) {
      if ((gone & bit(i)) != 0 && bytesOf(gone & ~bit(i)) >= excess) return false;
    }
    return true;
  }

  void startOffload(const State& state, int64_t time, int i) {
    const Mask wanted = useful_[static_cast<size_t>(state.next)];
    if (state.out != kNone || (wanted & state.device & bit(i)) == 0) return;
    if ((state.host & bit(i)) != 0 || state.in == i || (beingWritten(state) & bit(i)) != 0) return;
    State after = state;
    after.out = static_cast<int8_t>(i);
    after.outLeft = static_cast<int8_t>(item(i).units * step_.outPerUnit);
    push(after, time);
  }

  void startPrefetch(const State& state, int64_t time, int i) {
    if (state.in != kNone) return;
    const Mask wanted = useful_[static_cast<size_t>(state.next)] | state.ahead;
    State after = state;
    after.in = static_cast<int8_t>(i);
    after.inLeft = static_cast<int8_t>(item(i).units * step_.inPerUnit);
    const bool isMissing = (state.device & bit(i)) == 0;
    if (isMissing && (wanted & state.host & bit(i)) != 0) pushFitting(after, time, 0);
    const Mask kept = live_[static_cast<size_t>(state.next)] | inUse(state) | state.ahead;
    if (!isInput(i) || (kept & bit(i)) != 0) return;
    after.device &= ~bit(i);
    after.ahead |= bit(i);
    pushFitting(after, time, 0);
  }

  // To the next end of anything.
  void advance(State state, int64_t time) {
    int8_t wait = 127;
    if (state.run != kNone) wait = std::min(wait, state.runLeft);
    if (state.out != kNone) wait = std::min(wait, state.outLeft);
    if (state.in != kNone) wait = std::min(wait, state.inLeft);
    if (wait == 127) return;
    const int8_t copied = state.out;
    if (state.run != kNone && (state.runLeft -= wait) == 0) {
      state.run = kNone;
      state.recomputeOf = kNone;
    }
    if (state.out != kNone && (state.outLeft -= wait) == 0) {
      state.out = kNone;
      state.host |= bit(copied);
    }
    if (state.in != kNone && (state.inLeft -= wait) == 0) {
      state.device |= bit(state.in);
      state.in = kNone;
    }
    push(state, time + wait * kUnitTime);
  }

  const SmallStep& step_;
  int budget_;
  int items_ = 0;
  int nodes_ = 0;
  Mask inputs_ = 0;           // bound anew each step: the host has the next as soon as it is wanted
  std::vector<Mask> live_;    // by next node: some node reads the current version later
  std::vector<Mask> useful_;  // ... or a recompute could use it
  std::unordered_map<uint64_t, int64_t> best_;
  std::vector<State> pool_;
  std::priority_queue<std::pair<int64_t, size_t>, std::vector<std::pair<int64_t, size_t>>,
                      std::greater<>>
      queue_;
};

}  // namespace

Verdict searchAllSchedules(const SmallStep& step, int budgetUnits, int64_t period) {
  return Search(step, budgetUnits).run(period);
}

}  // namespace stowage::tests
