// SPDX-License-Identifier: Apache-2.0
//
// Who uses the same bytes, and whether all uses of the one are over before the other begins (V13 on
// the device, V19 on host and disk, V17 with a temp region, V21 for a in-place reuse, V24 across
// the step boundary). A sweep over the stays in issue order keeps, for every byte, the stay that
// had it last; a new stay is compared with those alone, because "all of A before all of B" is
// transitive. So a stay costs the logarithm of the number of stays, however often an address is
// used again. The second step is swept over what the first left behind. The step boundary is right
// when the last stay of each byte in a step is over before the first of the next: the rest repeats
// the first step.
#include <algorithm>
#include <map>

#include "ir/base/interval.h"
#include "ir/verify/verify_internal.h"

namespace stowage::ir::verifier {

namespace {

struct Stay {
  ResidencyId residency;  // invalid: the temp region of `begin`
  ByteRange bytes;
  CommandId begin;                // first use; invalid: held from the step before
  llvm::ArrayRef<uint32_t> uses;  // of the residency
  bool isForever = false;         // shares its bytes with nothing, whatever the order
  bool isTail = false;            // held into the next step, where its head goes on
  Clock last{};                   // its uses in the step swept last; per lane the last counts
};

std::vector<Stay> findStays(const Facts& facts, Space space) {
  std::vector<Stay> stays;
  const auto add = [&](Stay stay) {
    if (stay.bytes.begin >= 0 && !stay.bytes.isEmpty()) stays.push_back(stay);
  };
  for (size_t i = 0; i < facts.schedule.residencies.size(); ++i) {
    const ResidencyId id(i);
    const Residency& residency = facts.schedule.residency(id);
    if (residency.space != space) continue;
    const llvm::ArrayRef<uint32_t> uses = facts.usesOf(id);
    const auto* firstDefining = std::find_if(
        uses.begin(), uses.end(), [&](uint32_t use) { return facts.allUses()[use].defines(); });
    const bool isDelivered = facts.delivered(residency.storage) == id;
    Stay stay{.residency = id,
              .bytes = {residency.offset, residency.offset + facts.size(id).value()},
              .uses = uses,
              .isForever = isDelivered || facts.isInputSlot(id) ||
                           (facts.isHeld(id) && firstDefining == uses.end())};
    if (facts.isHeld(id) && !stay.isForever) {
      const auto headUses = static_cast<size_t>(firstDefining - uses.begin());
      stay.uses = uses.take_front(headUses);
      add(stay);
      stay.uses = uses.drop_front(headUses);
      stay.isTail = true;
    }
    if (!stay.isForever) {
      if (stay.uses.empty()) continue;
      stay.begin = facts.allUses()[stay.uses.front()].command;
    }
    add(stay);
  }
  if (space != Space::kDevice) return stays;
  for (size_t i = 0; i < facts.schedule.commands.size(); ++i) {
    const TempRegion& temp = facts.schedule.commands[i].temp;
    add({.bytes = {temp.offset, temp.offset + temp.bytes.value()}, .begin = CommandId(i)});
  }
  return stays;
}

class Sweep {
 public:
  Sweep(const Facts& facts, const HappensBefore& order, Space space, Report& report)
      : facts_(facts),
        order_(order),
        space_(space),
        report_(report),
        stays_(findStays(facts, space)) {
    std::stable_sort(stays_.begin(), stays_.end(),
                     [](const Stay& a, const Stay& b) { return a.begin < b.begin; });
  }

  void run() {
    for (const int step : {0, 1}) {
      for (Stay& stay : stays_) {
        if (step == 1 && !stay.begin.isValid()) continue;
        enter(step, stay);
      }
    }
  }

 private:
  struct Segment {
    int64_t end = 0;
    const Stay* stay = nullptr;
    int step = 0;
  };

  void enter(int step, Stay& stay) {
    for (const Segment& before : findSegments(stay.bytes)) {
      if (before.stay->residency.isValid() && before.stay->residency == stay.residency) continue;
      checkPair(before, {0, &stay, step});
    }
    stay.last = Clock{};
    if (!stay.residency.isValid()) order_.include(stay.last, {step, stay.begin});
    for (const uint32_t use : stay.uses) {
      order_.include(stay.last, {step, facts_.allUses()[use].command});
    }
    occupy(stay.bytes, {stay.bytes.end, &stay, step});
  }

  /// Who has some of the bytes, each stay once.
  std::vector<Segment> findSegments(ByteRange bytes) const {
    std::vector<Segment> found;
    auto it = map_.upper_bound(bytes.begin);
    if (it != map_.begin()) --it;
    for (; it != map_.end() && it->first < bytes.end; ++it) {
      if (it->second.end <= bytes.begin) continue;
      const bool isKnown = std::any_of(found.begin(), found.end(), [&](const Segment& segment) {
        return segment.stay == it->second.stay;
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

  /// What defines `b` must come after all uses of `a`; that the other uses of `b` come after that
  /// is V10 to V12.
  void checkPair(const Segment& before, const Segment& after) {
    const Stay& a = *before.stay;
    const Stay& b = *after.stay;
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
    const Moment begin{after.step, b.begin};
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
  bool takesFrom(const Stay& a, const Stay& b) const {
    if (!a.residency.isValid() || !b.residency.isValid() || !b.begin.isValid()) return false;
    const Command& command = facts_.schedule.command(b.begin);
    return command.takes == a.residency && facts_.freshResult(b.begin) == b.residency;
  }

  int ownRule(const Stay& a, const Stay& b) const {
    if (!a.residency.isValid() || !b.residency.isValid()) return 17;
    return space_ == Space::kDevice ? 13 : 19;
  }

  std::string describe(const Stay& stay) const {
    return stay.residency.isValid() ? facts_.describe(stay.residency)
                                    : "the temp region of " + facts_.describe(stay.begin);
  }

  void violate(int rule, const Stay& a, const Stay& b, const std::string& why) {
    const ByteRange shared = a.bytes.intersection(b.bytes);
    report_.add(rule, b.begin,
                describe(b) + " shares bytes [" + std::to_string(shared.begin) + ", " +
                    std::to_string(shared.end) + ") with " + describe(a) + ": " + why);
  }

  const Facts& facts_;
  const HappensBefore& order_;
  const Space space_;
  Report& report_;
  std::vector<Stay> stays_;
  std::map<int64_t, Segment> map_;  // by first byte; segments do not overlap
};

}  // namespace

void checkSharing(const Facts& facts, const HappensBefore& order, Report& report) {
  for (const Space space : {Space::kDevice, Space::kHost, Space::kDisk}) {
    Sweep(facts, order, space, report).run();
  }
}

}  // namespace stowage::ir::verifier
