// SPDX-License-Identifier: Apache-2.0
//
// Who uses the same bytes, and whether all uses of the one are over before the other begins (V13 on
// the device, V19 on host and disk, V17 with a temp region, V21 for in-place reuse, V24 across the
// step boundary).
// A sweep in enqueue order keeps, for every byte, the live range that had it last. A new live range
// is compared with those alone, because "all of A before all of B" is transitive. So one live range
// costs the logarithm of their number, however often an address is used again. The second step is
// swept over what the first left behind. It is enough that the last live range of each byte in a
// step ends before the first one of the next step begins: the rest repeats the first step.
#include <algorithm>
#include <map>

#include "ir/base/interval.h"
#include "ir/verify/verify_internal.h"

namespace stowage::ir::verifier {

namespace {

// Bytes that must be left alone for a while: a live range of a residency, or a temp region.
struct LiveBytes {
  ResidencyId residency;  // invalid: the temp region of `begin`
  ByteRange bytes;
  CommandId begin;                // first use; invalid: held from the step before
  llvm::ArrayRef<uint32_t> uses;  // of the residency
  bool isForever = false;         // shares its bytes with nothing, whatever the order
  bool isTail = false;            // held into the next step, where its head goes on
  Clock last{};                   // its uses in the step swept last; per lane the last counts
};

std::vector<LiveBytes> findLiveBytes(const Facts& facts, Space space) {
  std::vector<LiveBytes> found;
  const auto add = [&](LiveBytes live) {
    if (live.bytes.begin >= 0 && !live.bytes.isEmpty()) found.push_back(live);
  };
  for (size_t i = 0; i < facts.schedule.residencies.size(); ++i) {
    const ResidencyId id(i);
    const Residency& residency = facts.schedule.residency(id);
    if (residency.space != space) continue;
    const llvm::ArrayRef<uint32_t> uses = facts.usesOf(id);
    const auto* firstDefining = std::find_if(
        uses.begin(), uses.end(), [&](uint32_t use) { return facts.allUses()[use].defines(); });
    const bool isDelivered = facts.delivered(residency.storage) == id;
    LiveBytes live{.residency = id,
                   .bytes = {residency.offset, residency.offset + facts.size(id).value()},
                   .uses = uses,
                   .isForever = isDelivered || facts.isInputSlot(id) ||
                                (facts.isHeld(id) && firstDefining == uses.end())};
    if (facts.isHeld(id) && !live.isForever) {
      const auto headUses = static_cast<size_t>(firstDefining - uses.begin());
      live.uses = uses.take_front(headUses);
      add(live);
      live.uses = uses.drop_front(headUses);
      live.isTail = true;
    }
    if (!live.isForever) {
      if (live.uses.empty()) continue;
      live.begin = facts.allUses()[live.uses.front()].command;
    }
    add(live);
  }
  if (space != Space::kDevice) return found;
  for (size_t i = 0; i < facts.schedule.commands.size(); ++i) {
    const TempRegion& temp = facts.schedule.commands[i].temp;
    add({.bytes = {temp.offset, temp.offset + temp.bytes.value()}, .begin = CommandId(i)});
  }
  return found;
}

class Sweep {
 public:
  Sweep(const Facts& facts, const HappensBefore& order, Space space, Report& report)
      : facts_(facts),
        order_(order),
        space_(space),
        report_(report),
        live_(findLiveBytes(facts, space)) {
    std::stable_sort(live_.begin(), live_.end(),
                     [](const LiveBytes& a, const LiveBytes& b) { return a.begin < b.begin; });
  }

  void run() {
    for (const int step : {0, 1}) {
      for (LiveBytes& live : live_) {
        if (step == 1 && !live.begin.isValid()) continue;
        enter(step, live);
      }
    }
  }

 private:
  struct Segment {
    int64_t end = 0;
    const LiveBytes* owner = nullptr;
    int step = 0;
  };

  void enter(int step, LiveBytes& live) {
    for (const Segment& before : findSegments(live.bytes)) {
      if (before.owner->residency.isValid() && before.owner->residency == live.residency) continue;
      checkPair(before, {0, &live, step});
    }
    live.last = Clock{};
    if (!live.residency.isValid()) order_.include(live.last, {step, live.begin});
    for (const uint32_t use : live.uses) {
      order_.include(live.last, {step, facts_.allUses()[use].command});
    }
    occupy(live.bytes, {live.bytes.end, &live, step});
  }

  /// Segments that share bytes with `bytes`, one per owner.
  std::vector<Segment> findSegments(ByteRange bytes) const {
    std::vector<Segment> found;
    auto it = map_.upper_bound(bytes.begin);
    if (it != map_.begin()) --it;
    for (; it != map_.end() && it->first < bytes.end; ++it) {
      if (it->second.end <= bytes.begin) continue;
      const bool isKnown = std::any_of(found.begin(), found.end(), [&](const Segment& segment) {
        return segment.owner == it->second.owner;
      });
      if (!isKnown) found.push_back(it->second);
    }
    return found;
  }

  void occupy(ByteRange bytes, Segment segment) {
    auto it = map_.upper_bound(bytes.begin);
    if (it != map_.begin()) --it;
    while (it != map_.end() && it->first < bytes.end) {
      const int64_t begin = it->first;
      const Segment old = it->second;
      if (old.end <= bytes.begin) {
        ++it;
        continue;
      }
      it = map_.erase(it);
      if (begin < bytes.begin) {
        Segment left = old;
        left.end = bytes.begin;
        map_.emplace(begin, left);
      }
      if (old.end > bytes.end) map_.emplace(bytes.end, old);
    }
    map_.insert_or_assign(bytes.begin, segment);
  }

  /// The command that begins `b` must come after all uses of `a`. V10 to V12 say that the other
  /// uses of `b` come after that command.
  void checkPair(const Segment& before, const Segment& after) {
    const LiveBytes& a = *before.owner;
    const LiveBytes& b = *after.owner;
    const bool inOneStep = before.step == after.step;
    if (a.isForever || !b.begin.isValid()) {
      violate(ownRule(a, b), a, b, "both hold them between the steps");
      return;
    }
    if (inOneStep && after.step == 1) return;  // as in the first step
    if (inOneStep && a.isTail) {
      violate(ownRule(a, b), a, b, "which is held into the next step");
      return;
    }
    const bool isInPlaceReuse = inOneStep && takesFrom(a, b);
    const CommandInstance begin{after.step, b.begin};
    const Clock until = isInPlaceReuse ? order_.end(begin) : order_.start(begin);
    if (isWithin(a.last, until)) return;
    size_t lane = 0;
    while (a.last[lane] <= until[lane]) ++lane;
    const CommandId late = order_.lastOf(lane, a.last[lane]).command;
    violate(isInPlaceReuse ? 21
            : inOneStep    ? ownRule(a, b)
                           : 24,
            a, b,
            facts_.describe(b.begin) + " may start before " + facts_.describe(late) +
                (inOneStep ? "" : " of the step before") + " has finished");
  }

  /// The command that begins `b` takes the bytes of `a` over; what must hold is V21.
  bool takesFrom(const LiveBytes& a, const LiveBytes& b) const {
    if (!a.residency.isValid() || !b.residency.isValid() || !b.begin.isValid()) return false;
    const Command& command = facts_.schedule.command(b.begin);
    return command.takes == a.residency && facts_.freshResult(b.begin) == b.residency;
  }

  int ownRule(const LiveBytes& a, const LiveBytes& b) const {
    if (!a.residency.isValid() || !b.residency.isValid()) return 17;
    return space_ == Space::kDevice ? 13 : 19;
  }

  std::string describe(const LiveBytes& live) const {
    return live.residency.isValid() ? facts_.describe(live.residency)
                                    : "the temp region of " + facts_.describe(live.begin);
  }

  void violate(int rule, const LiveBytes& a, const LiveBytes& b, const std::string& why) {
    const ByteRange shared = a.bytes.intersection(b.bytes);
    report_.add(rule, b.begin,
                describe(b) + " shares bytes [" + std::to_string(shared.begin) + ", " +
                    std::to_string(shared.end) + ") with " + describe(a) + ": " + why);
  }

  const Facts& facts_;
  const HappensBefore& order_;
  const Space space_;
  Report& report_;
  std::vector<LiveBytes> live_;
  std::map<int64_t, Segment> map_;  // by first byte; segments do not overlap
};

}  // namespace

void checkSharing(const Facts& facts, const HappensBefore& order, Report& report) {
  for (const Space space : {Space::kDevice, Space::kHost, Space::kDisk}) {
    Sweep(facts, order, space, report).run();
  }
}

}  // namespace stowage::ir::verifier
