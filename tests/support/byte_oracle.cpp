// SPDX-License-Identifier: Apache-2.0
#include "tests/support/byte_oracle.h"

#include <algorithm>
#include <map>
#include <vector>

namespace stowage::tests {

namespace {

/// One command's dealings with one range, in one of the two steps.
struct Event {
  size_t instance = 0;  // of its command: step * commands + command
  int owner = 0;        // residency; below zero: the temp region of a command
  ir::Space space = ir::Space::kDevice;
  int64_t begin = 0, end = 0;  // units
  bool reads = false, writes = false;
  bool begins = false;  // a live range of its residency: what was there before does not matter
};

class Judge {
 public:
  Judge(const ir::Schedule& schedule, const ir::Graph& graph, const ir::Target& target)
      : schedule_(schedule),
        graph_(graph),
        target_(target),
        count_(schedule.commands.size()),
        before_(2 * count_, std::vector<bool>(2 * count_, false)) {}

  std::set<int> run() {
    close();
    collect();
    checkExclusive();
    checkPairs();
    checkOwners();
    return rules_;
  }

 private:
  int stepOf(size_t instance) const { return instance < count_ ? 0 : 1; }

  void order(size_t first, size_t then) {
    if (before_[then][first]) return;
    for (size_t i = 0; i < before_[first].size(); ++i) {
      if (before_[first][i]) before_[then][i] = true;
    }
    before_[then][first] = true;
  }

  /// Edges come from earlier instances, so one pass in order closes the relation.
  void close() {
    for (size_t instance = 0; instance < 2 * count_; ++instance) {
      const bool second = stepOf(instance) == 1;
      const ir::Command& command = schedule_.commands[instance % count_];
      for (size_t other = instance; other-- > 0;) {
        if (schedule_.commands[other % count_].stream != command.stream) continue;
        order(other, instance);
        break;
      }
      for (const ir::CommandId wait : command.wait) {
        order(wait.index() + (second ? count_ : 0), instance);
      }
      if (!second) continue;
      for (const ir::CommandId prev : command.prev) order(prev.index(), instance);
      if (!schedule_.joined) continue;
      for (size_t other = 0; other < count_; ++other) order(other, instance);
    }
  }

  int64_t unit() const { return target_.alignBytes; }

  Event rangeOf(ir::ResidencyId id) const {
    const ir::Residency& residency = schedule_.residency(id);
    const int64_t bytes = graph_.storage(residency.storage).bytes.value();
    const int64_t block = residency.space == ir::Space::kDisk ? 4096 : unit();
    const int64_t rounded = (bytes + block - 1) / block * block;
    return {.owner = id.raw(),
            .space = residency.space,
            .begin = residency.offset / unit(),
            .end = (residency.offset + rounded) / unit()};
  }

  void touch(size_t instance, ir::ResidencyId id, bool writes) {
    for (Event& event : events_) {
      if (event.instance != instance || event.owner != id.raw()) continue;
      (writes ? event.writes : event.reads) = true;
      return;
    }
    Event event = rangeOf(id);
    event.instance = instance;
    (writes ? event.writes : event.reads) = true;
    events_.push_back(event);
  }

  void collect() {
    std::vector<Event> all;
    for (size_t instance = 0; instance < 2 * count_; ++instance) {
      const ir::Command& command = schedule_.commands[instance % count_];
      events_.clear();
      if (command.kind == ir::CommandKind::kCopy) {
        touch(instance, command.from, false);
        touch(instance, command.to, true);
      }
      for (const ir::ResidencyId in : command.in) touch(instance, in, false);
      for (const ir::ResidencyId out : command.out) touch(instance, out, true);
      if (command.temp.bytes.value() > 0) {
        events_.push_back(
            {.instance = instance,
             .owner = -2 - static_cast<int>(instance % count_),
             .begin = command.temp.offset / unit(),
             .end = (command.temp.offset + command.temp.bytes.value() + unit() - 1) / unit(),
             .reads = false,
             .writes = true});
      }
      all.insert(all.end(), events_.begin(), events_.end());
    }
    events_ = std::move(all);
    markBegins();
    for (const ir::BoundaryEntry& entry : schedule_.boundary) {
      const bool isInput = !graph_.storage(entry.storage).persistent;
      for (const ir::ResidencyId at : entry.at) {
        held_.push_back(rangeOf(at));
        if (isInput) slots_.insert(at.raw());
      }
    }
    findDelivered();
  }

  /// A live range begins with the first write of a step that does not read.
  void markBegins() {
    std::set<std::pair<int, int>> begun;
    for (Event& event : events_) {
      const bool isDefining = event.writes && !event.reads;
      const bool isTemp = event.owner < 0;
      event.begins =
          isDefining && (isTemp || begun.insert({stepOf(event.instance), event.owner}).second);
    }
  }

  void findDelivered() {
    for (size_t i = 0; i < graph_.storages().size(); ++i) {
      if (!graph_.storages()[i].output) continue;
      int delivered = -1;
      for (const Event& held : held_) {
        const bool fits = schedule_.residencies[static_cast<size_t>(held.owner)].storage.raw() ==
                              static_cast<int>(i) &&
                          held.space == ir::Space::kHost;
        if (fits && delivered < 0) delivered = held.owner;
      }
      for (const Event& event : events_) {
        if (event.owner < 0 || !event.writes || event.space != ir::Space::kHost) continue;
        if (schedule_.residencies[static_cast<size_t>(event.owner)].storage.raw() ==
            static_cast<int>(i)) {
          delivered = event.owner;
        }
      }
      delivered_.insert(delivered);
    }
  }

  static bool meets(const Event& a, const Event& b) {
    return a.space == b.space && a.begin < b.end && b.begin < a.end && a.begin < a.end &&
           b.begin < b.end;
  }

  int ruleOfSharing(const Event& a, const Event& b) const {
    if (a.owner < 0 || b.owner < 0) return 17;
    return a.space == ir::Space::kDevice ? 13 : 19;
  }

  bool takes(const Event& b, const Event& a) const {
    if (a.owner < 0 || b.owner < 0) return false;
    for (const Event& event : events_) {
      // The in-place reuse happens where `b` is touched first.
      if (event.owner != b.owner) continue;
      return schedule_.commands[event.instance % count_].takes.raw() == a.owner;
    }
    return false;
  }

  void checkExclusive() {
    std::vector<Event> all = events_;
    all.insert(all.end(), held_.begin(), held_.end());
    for (const Event& a : all) {
      if (slots_.count(a.owner) == 0 && delivered_.count(a.owner) == 0) continue;
      for (const Event& b : all) {
        if (a.owner != b.owner && meets(a, b)) rules_.insert(ruleOfSharing(a, b));
      }
    }
    for (const Event& a : held_) {
      for (const Event& b : held_) {
        if (a.owner != b.owner && meets(a, b)) rules_.insert(ruleOfSharing(a, b));
      }
    }
  }

  /// Two events on a common unit, one writing, must be ordered.
  void checkPairs() {
    for (size_t j = 0; j < events_.size(); ++j) {
      for (size_t i = 0; i < j; ++i) {
        const Event& a = events_[i];
        const Event& b = events_[j];
        if (!(a.writes || b.writes) || !meets(a, b)) continue;
        if (stepOf(a.instance) == 1) continue;  // as in the first step
        const bool acrossBoundary = stepOf(b.instance) == 1;
        if (acrossBoundary && a.owner == b.owner && slots_.count(a.owner) > 0) continue;
        const bool reusesInPlace = !acrossBoundary && takes(b, a);
        const bool isOrdered =
            before_[b.instance][a.instance] || (reusesInPlace && a.instance == b.instance);
        if (isOrdered || (a.instance == b.instance && a.owner == b.owner)) continue;
        if (acrossBoundary) {
          rules_.insert(24);
        } else if (a.owner == b.owner) {
          if (a.writes && b.reads) rules_.insert(10);
          if (a.reads && b.writes) rules_.insert(11);
          if (a.writes && b.writes) rules_.insert(12);
        } else {
          rules_.insert(reusesInPlace ? 21 : ruleOfSharing(a, b));
        }
      }
    }
  }

  using History = std::map<std::pair<ir::Space, int64_t>, std::vector<Event>>;

  void write(const Event& event) {
    for (int64_t at = event.begin; at < event.end; ++at) {
      written_[{event.space, at}].push_back(event);
    }
  }

  /// In enqueue order: nobody has written what is read since its own residency did.
  void checkOwners() {
    for (const Event& held : held_) write(held);
    size_t next = 0;
    for (int step = 0; step < 2; ++step) {
      for (; next < events_.size() && stepOf(events_[next].instance) == step; ++next) {
        if (!events_[next].begins) expectOwner(events_[next], step);
        if (events_[next].writes) write(events_[next]);
      }
      for (const Event& held : held_) {
        if (slots_.count(held.owner) > 0) {
          write(held);
        } else {
          expectOwner(held, step);
        }
      }
    }
  }

  void expectOwner(const Event& event, int step) {
    for (int64_t at = event.begin; at < event.end; ++at) {
      const std::vector<Event>& history = written_[{event.space, at}];
      for (auto it = history.rbegin(); it != history.rend() && it->owner != event.owner; ++it) {
        const bool acrossBoundary = step == 1 && stepOf(it->instance) == 0;
        rules_.insert(acrossBoundary ? 24 : takes(*it, event) ? 21 : ruleOfSharing(*it, event));
      }
    }
  }

  History written_;  // by unit: who wrote it, in enqueue order
  const ir::Schedule& schedule_;
  const ir::Graph& graph_;
  const ir::Target& target_;
  const size_t count_;
  std::vector<std::vector<bool>> before_;  // [then][first]
  std::vector<Event> events_;              // by instance; reads of a command before its writes
  std::vector<Event> held_;                // at the boundary
  std::set<int> slots_, delivered_;
  std::set<int> rules_;
};

}  // namespace

std::set<int> judgeBytes(const ir::Schedule& schedule, const ir::Graph& graph,
                         const ir::Target& target) {
  return Judge(schedule, graph, target).run();
}

}  // namespace stowage::tests
