// SPDX-License-Identifier: Apache-2.0
#include "tests/support/schedule_layout.h"

#include <algorithm>
#include <map>
#include <set>

namespace stowage::tests {

namespace {

constexpr int64_t kEnd = INT64_MAX;

/// Something that takes bytes of a space: a residency, or the temp region of a command.
struct Item {
  int64_t residency = -1;
  int64_t tempOf = -1;
  int64_t bytes = 0;
  Busy busy;
  std::vector<Touch> touches;
  int64_t offset = 0;
};

std::vector<Item> findItems(const ir::Schedule& schedule, const ir::Graph& graph,
                            const ir::Target& target, const std::vector<bool>& exclusive,
                            ir::Space space) {
  const auto touches = findTouches(schedule);
  const std::vector<Busy> busy = findBusy(schedule, touches, exclusive);
  std::vector<Item> items;
  for (size_t i = 0; i < schedule.residencies.size(); ++i) {
    if (schedule.residencies[i].space != space) continue;
    items.push_back({.residency = static_cast<int64_t>(i),
                     .bytes = sizeOf(schedule, graph, target, i),
                     .busy = busy[i],
                     .touches = touches[i],
                     .offset = schedule.residencies[i].offset});
  }
  if (space != ir::Space::kDevice) return items;
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    const ir::TempRegion& temp = schedule.commands[i].temp;
    if (temp.bytes.value() == 0) continue;
    const auto at = static_cast<int64_t>(i);
    items.push_back({.tempOf = at,
                     .bytes = temp.bytes.value(),
                     .busy = {.begin = at, .end = at},
                     .touches = {{.command = at, .writes = true}},
                     .offset = temp.offset});
  }
  return items;
}

class FirstFit {
 public:
  explicit FirstFit(int64_t base, int64_t align) : base_(base), align_(align) {}

  void place(Item& item, const std::map<int64_t, int64_t>& fixed) {
    forget(item.busy.begin);
    const auto found = fixed.find(item.residency);
    item.offset = found != fixed.end() ? found->second : findOffset(item);
    taken_.insert({item.offset, item.bytes, &item});
    peak_ = std::max(peak_, item.offset + item.bytes);
  }
  int64_t peak() const { return peak_; }

 private:
  struct Taken {
    int64_t offset;
    int64_t bytes;
    const Item* item;
    bool operator<(const Taken& other) const {
      return std::tie(offset, bytes, item->residency, item->tempOf) <
             std::tie(other.offset, other.bytes, other.item->residency, other.item->tempOf);
    }
  };

  /// Items come by rising begin, so what has ended can go.
  void forget(int64_t now) {
    if (now == lastForgotten_) return;
    lastForgotten_ = now;
    for (auto it = taken_.begin(); it != taken_.end();) {
      it = it->item->busy.end < now ? taken_.erase(it) : std::next(it);
    }
  }

  int64_t findOffset(const Item& item) const {
    int64_t offset = base_;
    for (const Taken& taken : taken_) {
      if (!taken.item->busy.overlaps(item.busy)) continue;
      if (taken.offset - offset >= item.bytes) break;
      offset = std::max(offset, taken.offset + taken.bytes);
      offset = (offset + align_ - 1) / align_ * align_;
    }
    return offset;
  }

  int64_t base_;
  int64_t align_;
  int64_t peak_ = 0;
  int64_t lastForgotten_ = -3;
  std::set<Taken> taken_;
};

int64_t placeReserved(ir::Schedule& schedule, const ir::Target& target) {
  schedule.reserved = target.reserved;
  int64_t offset = 0;
  for (ir::ReservedRegion& region : schedule.reserved) {
    region.offset = Bytes(offset);
    offset += roundUp(region.bytes, target.alignBytes).value();
  }
  return offset;
}

/// Results that take an operand's bytes over: result's residency -> operand's.
std::map<int64_t, int64_t> findInPlaceReuse(const ir::Schedule& schedule, const ir::Graph& graph) {
  std::map<int64_t, int64_t> takes;
  for (const ir::Command& command : schedule.commands) {
    if (!command.takes.isValid()) continue;
    const ir::StorageId result = graph.value(graph.node(command.node).results[0]).storage;
    for (const ir::ResidencyId out : command.out) {
      if (schedule.residency(out).storage == result) takes[out.raw()] = command.takes.raw();
    }
  }
  return takes;
}

/// Bytes that will be reused in place are needed until the last taker is done.
void extendToTakers(std::vector<Item>& items, const std::map<int64_t, int64_t>& takes) {
  std::map<int64_t, Item*> byResidency;
  for (Item& item : items) {
    if (item.residency >= 0) byResidency[item.residency] = &item;
  }
  for (auto it = items.rbegin(); it != items.rend(); ++it) {
    const auto taken = takes.find(it->residency);
    if (it->residency < 0 || taken == takes.end()) continue;
    Busy& busy = byResidency[taken->second]->busy;
    busy.end = std::max(busy.end, it->busy.end);
  }
}

void placeSpace(ir::Schedule& schedule, const ir::Graph& graph, const ir::Target& target,
                const std::vector<bool>& exclusive, ir::Space space) {
  const int64_t base = space == ir::Space::kDevice ? placeReserved(schedule, target) : 0;
  const int64_t align = space == ir::Space::kDisk ? 4096 : target.alignBytes;
  std::vector<Item> items = findItems(schedule, graph, target, exclusive, space);
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    const bool aHeld = a.busy.headEnd != -2;
    const bool bHeld = b.busy.headEnd != -2;
    return aHeld != bHeld ? aHeld : a.busy.begin < b.busy.begin;
  });
  const std::map<int64_t, int64_t> takes = findInPlaceReuse(schedule, graph);
  extendToTakers(items, takes);
  FirstFit fit(base, align);
  for (Item& item : items) {
    std::map<int64_t, int64_t> fixed;
    const auto taken = takes.find(item.residency);
    if (item.residency >= 0 && taken != takes.end()) {
      fixed[item.residency] = schedule.residencies[static_cast<size_t>(taken->second)].offset;
    }
    fit.place(item, fixed);
    if (item.residency >= 0) {
      schedule.residencies[static_cast<size_t>(item.residency)].offset = item.offset;
    } else {
      schedule.commands[static_cast<size_t>(item.tempOf)].temp.offset = item.offset;
    }
  }
  const int64_t arena = std::max(fit.peak(), base);
  if (arena > 0 || space == ir::Space::kDevice) schedule.arenas.push_back({space, Bytes(arena)});
}

/// Waits found so far: per command the latest per stream is enough, as streams are first in, first
/// out.
class WaitList {
 public:
  explicit WaitList(ir::Schedule& schedule) : schedule_(schedule) {}

  void add(int64_t command, int64_t on) {
    if (command == on) return;
    insert(latest_[command], on, command);
  }
  void addPrevious(int64_t command, int64_t on) { insert(latestPrevious_[command], on, command); }

  void write() {
    for (const auto& [command, waits] : latest_) {
      for (const int64_t on : waits) {
        if (on >= 0) at(command).wait.push_back(ir::CommandId(static_cast<int32_t>(on)));
      }
      std::sort(at(command).wait.begin(), at(command).wait.end());
    }
    if (schedule_.joined) return;
    for (const auto& [command, waits] : latestPrevious_) {
      for (const int64_t on : waits) {
        if (on >= 0) at(command).prev.push_back(ir::CommandId(static_cast<int32_t>(on)));
      }
      std::sort(at(command).prev.begin(), at(command).prev.end());
    }
  }

 private:
  using PerStream = std::array<int64_t, ir::kStreamCount>;
  ir::Command& at(int64_t command) { return schedule_.commands[static_cast<size_t>(command)]; }

  void insert(std::vector<int64_t>& waits, int64_t on, int64_t command) {
    if (waits.empty()) waits.assign(ir::kStreamCount, -1);
    if (at(on).stream == at(command).stream) return;
    int64_t& slot = waits[static_cast<size_t>(at(on).stream)];
    slot = std::max(slot, on);
  }

  ir::Schedule& schedule_;
  std::map<int64_t, std::vector<int64_t>> latest_;
  std::map<int64_t, std::vector<int64_t>> latestPrevious_;
};

/// All pairs of touches of one residency of which one writes, in one step and into the next.
void addDataWaits(const std::vector<Touch>& touches, bool isHeld, WaitList& waits) {
  for (size_t i = 0; i < touches.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (touches[i].writes || touches[j].writes) waits.add(touches[i].command, touches[j].command);
    }
  }
  // Into the next step only up to the first write, which has met everything before it.
  for (const Touch& next : touches) {
    for (const Touch& touch : touches) {
      const bool meets = next.writes || (isHeld && touch.writes);
      if (meets) waits.addPrevious(next.command, touch.command);
    }
    if (next.writes) break;
  }
}

/// `a` uses the bytes before `b` does in a step, and again in the next.
void addReuseWaits(const Item& a, const Item& b, WaitList& waits) {
  const auto firstOf = [](const Item& item) {
    for (const Touch& touch : item.touches) {
      if (touch.command >= item.busy.begin) return touch.command;
    }
    return int64_t{-1};
  };
  const bool aIsHead = a.busy.headEnd != -2;
  if (firstOf(b) < 0) return;
  for (const Touch& touch : a.touches) {
    if (!aIsHead || touch.command <= a.busy.headEnd) waits.add(firstOf(b), touch.command);
  }
  // Around the step boundary: all of `b`, then `a` anew. A held `a` comes back within this step.
  for (const Touch& touch : b.touches) {
    if (aIsHead) {
      if (firstOf(a) >= 0) waits.add(firstOf(a), touch.command);
    } else if (firstOf(a) >= 0) {
      waits.addPrevious(firstOf(a), touch.command);
    }
  }
  if (!aIsHead) return;
  for (const Touch& touch : a.touches) {
    if (touch.command >= a.busy.begin) waits.addPrevious(firstOf(b), touch.command);
  }
}

}  // namespace

bool Busy::overlaps(const Busy& other) const {
  const auto meet = [](int64_t aBegin, int64_t aEnd, int64_t bBegin, int64_t bEnd) {
    return aBegin <= bEnd && bBegin <= aEnd;
  };
  if (headEnd != -2 && other.headEnd != -2) return true;
  return meet(begin, end, other.begin, other.end) ||
         (headEnd != -2 && meet(-1, headEnd, other.begin, other.end)) ||
         (other.headEnd != -2 && meet(begin, end, -1, other.headEnd));
}

std::vector<std::vector<Touch>> findTouches(const ir::Schedule& schedule) {
  std::vector<std::vector<Touch>> touches(schedule.residencies.size());
  const auto add = [&](ir::ResidencyId id, int64_t command, bool writes) {
    std::vector<Touch>& list = touches[id.index()];
    if (list.empty() || list.back().command != command) list.push_back({.command = command});
    (writes ? list.back().writes : list.back().reads) = true;
  };
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    const ir::Command& command = schedule.commands[i];
    const auto at = static_cast<int64_t>(i);
    if (command.kind == ir::CommandKind::kCopy) {
      add(command.from, at, false);
      add(command.to, at, true);
      continue;
    }
    for (const ir::ResidencyId in : command.in) add(in, at, false);
    for (const ir::ResidencyId out : command.out) add(out, at, true);
  }
  return touches;
}

std::vector<Busy> findBusy(const ir::Schedule& schedule,
                           const std::vector<std::vector<Touch>>& touches,
                           const std::vector<bool>& exclusive) {
  std::vector<bool> held(touches.size(), false);
  for (const ir::BoundaryEntry& entry : schedule.boundary) {
    for (const ir::ResidencyId at : entry.at) held[at.index()] = true;
  }
  std::vector<Busy> busy(touches.size());
  for (size_t i = 0; i < touches.size(); ++i) {
    if (exclusive[i]) {
      busy[i] = {.begin = -1, .end = kEnd, .headEnd = kEnd};
    } else if (!held[i]) {
      if (touches[i].empty()) continue;
      busy[i] = {.begin = touches[i].front().command, .end = touches[i].back().command};
    } else {
      busy[i] = {.begin = kEnd, .end = kEnd, .headEnd = -1};
      for (const Touch& touch : touches[i]) {
        if (touch.writes && !touch.reads) {
          busy[i].begin = touch.command;
          break;
        }
        busy[i].headEnd = touch.command;
      }
      if (busy[i].begin == kEnd) busy[i] = {.begin = -1, .end = kEnd, .headEnd = kEnd};
    }
  }
  return busy;
}

int64_t sizeOf(const ir::Schedule& schedule, const ir::Graph& graph, const ir::Target& target,
               size_t residency) {
  const ir::Residency& placed = schedule.residencies[residency];
  const bool onDisk = placed.space == ir::Space::kDisk;
  return roundUp(graph.storage(placed.storage).bytes, onDisk ? 4096 : target.alignBytes).value();
}

void placeFirstFit(ir::Schedule& schedule, const ir::Graph& graph, const ir::Target& target,
                   const std::vector<bool>& exclusive) {
  schedule.arenas.clear();
  for (const ir::Space space : {ir::Space::kDevice, ir::Space::kHost, ir::Space::kDisk}) {
    placeSpace(schedule, graph, target, exclusive, space);
  }
}

void insertNeededWaits(ir::Schedule& schedule, const ir::Graph& graph, const ir::Target& target,
                       const std::vector<bool>& exclusive) {
  WaitList waits(schedule);
  const auto touches = findTouches(schedule);
  std::vector<bool> held(touches.size(), false);
  for (const ir::BoundaryEntry& entry : schedule.boundary) {
    const bool isInput = !graph.storage(entry.storage).persistent;
    for (const ir::ResidencyId at : entry.at) held[at.index()] = !isInput;
  }
  for (size_t i = 0; i < touches.size(); ++i) addDataWaits(touches[i], held[i], waits);
  for (const ir::Space space : {ir::Space::kDevice, ir::Space::kHost, ir::Space::kDisk}) {
    std::vector<Item> items = findItems(schedule, graph, target, exclusive, space);
    std::sort(items.begin(), items.end(),
              [](const Item& a, const Item& b) { return a.offset < b.offset; });
    for (size_t i = 0; i < items.size(); ++i) {
      const int64_t end = items[i].offset + items[i].bytes;
      for (size_t j = i + 1; j < items.size() && items[j].offset < end; ++j) {
        const Item& a = items[i];
        const Item& b = items[j];
        if (a.bytes == 0 || b.bytes == 0) continue;
        const bool aFirst =
            a.busy.headEnd != -2 || (b.busy.headEnd == -2 && a.busy.begin < b.busy.begin);
        addReuseWaits(aFirst ? a : b, aFirst ? b : a, waits);
      }
    }
  }
  waits.write();
}

void thinWaits(ir::Schedule& schedule) {
  std::vector<ir::Command>& commands = schedule.commands;
  const size_t count = commands.size();
  std::vector<std::vector<bool>> before(2 * count);  // [then][first], over two steps
  for (size_t then = 0; then < 2 * count; ++then) {
    ir::Command& command = commands[then % count];
    const size_t step = then / count;
    before[then].assign(2 * count, false);
    const auto follow = [&](size_t first) {
      for (size_t i = 0; i < before[first].size(); ++i) {
        if (before[first][i]) before[then][i] = true;
      }
      before[then][first] = true;
    };
    for (size_t i = then; i-- > 0;) {
      if (commands[i % count].stream != command.stream) continue;
      follow(i);
      break;
    }
    // Late ones first, as they imply early ones. Waits are thinned in the first step, where no
    // step before can imply them, and taken as they are then.
    const auto thin = [&](auto& waits, size_t offset, bool isFinal) {
      for (size_t k = waits.size(); k-- > 0;) {
        const size_t first = waits[k].index() + offset;
        if (before[then][first] && !isFinal) {
          waits.erase(waits.begin() + static_cast<ptrdiff_t>(k));
        } else {
          follow(first);
        }
      }
    };
    thin(command.wait, step * count, step == 1);
    if (step == 1) thin(command.prev, 0, false);
  }
}

void insertSerialWaits(ir::Schedule& schedule) {
  std::vector<ir::Command>& commands = schedule.commands;
  for (size_t i = 1; i < commands.size(); ++i) {
    if (commands[i].stream != commands[i - 1].stream) {
      commands[i].wait.push_back(ir::CommandId(i - 1));
    }
  }
  if (schedule.joined || commands.empty()) return;
  if (commands.front().stream != commands.back().stream) {
    commands.front().prev.push_back(ir::CommandId(commands.size() - 1));
  }
}

}  // namespace stowage::tests
