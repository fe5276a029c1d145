// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/property/mutations.h"
#include "tests/support/byte_oracle.h"

namespace stowage::tests {

namespace {

using ir::Command;
using ir::CommandId;
using ir::CommandKind;
using ir::Space;

bool isUsed(const ir::Schedule& schedule, ir::ResidencyId id) {
  return isHeld(schedule, id) ||
         std::any_of(schedule.commands.begin(), schedule.commands.end(), [&](const Command& c) {
           return c.from == id || c.to == id || std::count(c.in.begin(), c.in.end(), id) > 0 ||
                  std::count(c.out.begin(), c.out.end(), id) > 0;
         });
}

int64_t sizeOf(const Case& changed, const ir::Residency& residency) {
  return roundUp(changed.graph->storage(residency.storage).bytes,
                 residency.space == Space::kDisk ? 4096 : changed.target.alignBytes)
      .value();
}

int placeRule(Space space) { return space == Space::kDevice ? 16 : 19; }

/// One mutation per residency of the spaces asked for.
MutationKind atResidency(const char* name, int rule,
                         const std::function<Change(Case&, ir::Residency&)>& change) {
  return {name, rule, [=](const Case& original, const Visit& visit) {
            forEachPosition(original, original.schedule.residencies.size(), visit,
                            [&](Case& changed, size_t i) -> Change {
                              Change made = change(changed, changed.schedule.residencies[i]);
                              made.applies =
                                  made.applies && isUsed(original.schedule, ir::ResidencyId(i));
                              made.site = "r" + std::to_string(i);
                              return made;
                            });
          }};
}

MutationKind atTemp(const char* name, int rule,
                    const std::function<Change(Case&, Command&)>& change) {
  return {name, rule, [=](const Case& original, const Visit& visit) {
            forEachPosition(original, original.schedule.commands.size(), visit,
                            [&](Case& changed, size_t i) -> Change {
                              Command& command = changed.schedule.commands[i];
                              if (command.temp.bytes.value() == 0) return {};
                              Change made = change(changed, command);
                              made.site = "c" + std::to_string(i);
                              return made;
                            });
          }};
}

MutationKind once(const char* name, int rule, const std::function<bool(Case&)>& change,
                  std::set<int> expected = {}) {
  if (expected.empty()) expected = {rule};
  return {name, rule, [=](const Case& original, const Visit& visit) {
            forEachPosition(original, 1, visit, [&](Case& changed, size_t) -> Change {
              return {change(changed), "", expected};
            });
          }};
}

/// Each wait (or wait on the step before) on its own: the oracle says whether others imply it.
MutationKind dropEach(const char* name, int rule, bool ofStepBefore) {
  return {name, rule, [=](const Case& original, const Visit& visit) {
            const auto waits = [&](Case& changed, size_t i) -> llvm::SmallVectorImpl<CommandId>& {
              Command& command = changed.schedule.commands[i];
              if (ofStepBefore) return command.prev;
              return command.wait;
            };
            for (size_t i = 0; i < original.schedule.commands.size(); ++i) {
              Case copy = original;
              const size_t count = waits(copy, i).size();
              for (size_t k = 0; k < count; ++k) {
                Mutant mutant{.changed = original};
                auto& list = waits(mutant.changed, i);
                mutant.site = "c" + std::to_string(i) + " on c" + std::to_string(list[k].raw());
                list.erase(list.begin() + static_cast<ptrdiff_t>(k));
                visit(mutant);
              }
            }
          }};
}

/// A second copy into the residency that a launch defines, at the same time. A site only where the
/// oracle sees that nothing orders the two.
MutationKind fillTwice() {
  return {"second fill at the same time", 12, [](const Case& original, const Visit& visit) {
            forEachPosition(
                original, original.schedule.commands.size(), visit,
                [](Case& changed, size_t i) -> Change {
                  ir::Schedule& schedule = changed.schedule;
                  const Command& fill = schedule.commands[i];
                  if (fill.kind != CommandKind::kRun) return {};
                  Command copy;
                  copy.kind = CommandKind::kCopy;
                  copy.stream = ir::Stream::kHostToDevice;
                  copy.to = fill.out.front();
                  copy.from = addResidency(schedule, schedule.residency(copy.to).storage,
                                           Space::kHost, schedule.arenaBytes(Space::kHost).value());
                  insertCommand(schedule, i + 1, copy);
                  const bool races = judgeBytes(schedule, *changed.graph, changed.target).count(12);
                  return {races, "c" + std::to_string(i), {12}};
                });
          }};
}

/// Takes bytes over or gives them: then both must lie at one place.
bool takesPart(const Case& changed, ir::ResidencyId id) {
  for (const Command& command : changed.schedule.commands) {
    if (!command.takes.isValid()) continue;
    const ir::Node& node = changed.graph->node(command.node);
    const ir::StorageId result = changed.graph->value(node.results[0]).storage;
    const bool isResult = changed.schedule.residency(id).storage == result &&
                          std::count(command.out.begin(), command.out.end(), id) > 0;
    if (command.takes == id || isResult) return true;
  }
  return false;
}

/// Shifts by the least amount that keeps the alignment; outside of the arena it breaks its rule.
Change shift(Case& changed, ir::Residency& residency, int64_t direction) {
  const int64_t align = residency.space == Space::kDisk ? 4096 : changed.target.alignBytes;
  residency.offset += direction * align;
  const int64_t end = residency.offset + sizeOf(changed, residency);
  const bool isInside =
      residency.offset >= 0 && end <= changed.schedule.arenaBytes(residency.space).value();
  bool onReserved = false;
  for (const ir::ReservedRegion& region : changed.schedule.reserved) {
    const bool meets =
        residency.offset < (region.offset + region.bytes).value() && region.offset.value() < end;
    onReserved = onReserved || (residency.space == Space::kDevice && meets);
  }
  Change made{.applies = true};
  if (takesPart(changed, ir::ResidencyId(static_cast<size_t>(
                             &residency - changed.schedule.residencies.data())))) {
    made.expected = {21};
  } else if (!isInside) {
    made.expected = {placeRule(residency.space)};
  } else if (onReserved) {
    made.expected = {18};
  }
  return made;
}

std::vector<MutationKind> placeMutations() {
  std::vector<MutationKind> kinds;
  for (const int64_t direction : {-1, 1}) {
    kinds.push_back(
        atResidency("residency shifted", 13, [direction](Case& changed, ir::Residency& residency) {
          return shift(changed, residency, direction);
        }));
  }
  kinds.push_back(atResidency("residency misaligned", 16,
                              [](Case& changed, ir::Residency& residency) -> Change {
                                residency.offset += changed.target.alignBytes / 4;
                                return {.applies = true, .expected = {placeRule(residency.space)}};
                              }));
  kinds.push_back(atResidency(
      "residency past the end", 16, [](Case& changed, ir::Residency& residency) -> Change {
        residency.offset = changed.schedule.arenaBytes(residency.space).value();
        return {.applies = sizeOf(changed, residency) > 0,
                .expected = {placeRule(residency.space)}};
      }));
  kinds.push_back(
      atResidency("residency without an offset", 16, [](Case&, ir::Residency& residency) -> Change {
        residency.offset = ir::kUnplaced;
        return {.applies = true, .expected = {placeRule(residency.space)}};
      }));
  kinds.push_back(atResidency(
      "residency on a reserved region", 18, [](Case& changed, ir::Residency& residency) -> Change {
        residency.offset = 0;
        return {.applies = residency.space == Space::kDevice &&
                           !changed.schedule.reserved.empty() && sizeOf(changed, residency) > 0,
                .expected = {18}};
      }));
  for (const Space space : {Space::kDevice, Space::kHost, Space::kDisk}) {
    const auto shrink = [space](Case& changed) {
      for (ir::Arena& arena : changed.schedule.arenas) {
        if (arena.space != space || arena.bytes.value() == 0) continue;
        arena.bytes += Bytes(-1);
        return true;
      }
      return false;
    };
    // On the device the highest byte may also be a temp region's, or reserved.
    const std::set<int> expected =
        space == Space::kDevice ? std::set<int>{16, 17, 18} : std::set<int>{19};
    kinds.push_back(once("arena a byte smaller", placeRule(space), shrink, expected));
  }
  return kinds;
}

std::vector<MutationKind> tempMutations() {
  return {
      atTemp("temp region smaller than needed", 17,
             [](Case& changed, Command& run) -> Change {
               const Bytes need = changed.costs->nodes[run.node.index()].temporary;
               if (need.value() == 0) return {};
               run.temp.bytes = need - Bytes(1);
               return {.applies = true, .expected = {17}};
             }),
      atTemp("temp region on a result", 17,
             [](Case& changed, Command& run) -> Change {
               const ir::Residency& out = changed.schedule.residency(run.out.front());
               run.temp.offset = out.offset;
               return {.applies = out.space == Space::kDevice, .expected = {17}};
             }),
      atTemp("temp region shifted down", 17,
             [](Case& changed, Command& run) -> Change {
               run.temp.offset -= changed.target.alignBytes;
               const bool onReserved = run.temp.offset < 256 && !changed.schedule.reserved.empty();
               return {.applies = run.temp.offset >= 0,
                       .expected = onReserved ? std::set<int>{18} : std::set<int>{}};
             }),
      atTemp("temp region shifted up", 17,
             [](Case& changed, Command& run) -> Change {
               run.temp.offset += changed.target.alignBytes;
               const bool isInside = run.temp.offset + run.temp.bytes.value() <=
                                     changed.schedule.arenaBytes(Space::kDevice).value();
               return {.applies = true, .expected = isInside ? std::set<int>{} : std::set<int>{17}};
             }),
      atTemp("temp region misaligned", 17,
             [](Case& changed, Command& run) -> Change {
               run.temp.offset += changed.target.alignBytes / 4;
               return {.applies = true, .expected = {17}};
             }),
      atTemp("temp region past the end", 17,
             [](Case& changed, Command& run) -> Change {
               run.temp.offset = changed.schedule.arenaBytes(Space::kDevice).value();
               return {.applies = true, .expected = {17}};
             }),
  };
}

MutationKind changeClaim(const char* name, int rule,
                         const std::function<void(ir::Prediction&)>& change) {
  return once(name, rule, [=](Case& changed) {
    change(changed.schedule.predicted);
    return true;
  });
}

std::vector<MutationKind> claimMutations() {
  return {
      changeClaim("peak", 20, [](ir::Prediction& claim) { claim.peakBytes += Bytes(1); }),
      changeClaim("peak not claimed", 20, [](ir::Prediction& claim) { claim.peakBytes = {}; }),
      changeClaim("host peak", 20, [](ir::Prediction& claim) { claim.hostPeakBytes += Bytes(1); }),
      changeClaim("bytes out", 20, [](ir::Prediction& claim) { claim.bytesOut += Bytes(1); }),
      changeClaim("bytes in", 20, [](ir::Prediction& claim) { claim.bytesIn += Bytes(1); }),
      changeClaim("step below the bound", 30,
                  [](ir::Prediction& claim) { claim.bound = claim.stepTime + Nanoseconds(1); }),
      changeClaim("compute time", 30,
                  [](ir::Prediction& claim) { claim.computeTime += Nanoseconds(1); }),
      changeClaim("step shorter than its busiest stream", 30,
                  [](ir::Prediction& claim) {
                    claim.stepTime = Nanoseconds(1);
                    claim.bound = Nanoseconds(0);
                  }),
      once("arena that is not the budget", 20,
           [](Case& changed) {
             changed.budget += Bytes(changed.target.alignBytes);
             return true;
           }),
      once("reserved region of another size", 18,
           [](Case& changed) {
             if (changed.schedule.reserved.empty()) return false;
             changed.schedule.reserved.front().bytes += Bytes(-changed.target.alignBytes);
             return true;
           }),
      once("reserved region missing", 18,
           [](Case& changed) {
             if (changed.schedule.reserved.empty()) return false;
             changed.schedule.reserved.clear();
             return true;
           }),
  };
}

}  // namespace

std::vector<MutationKind> bytesMutations() {
  std::vector<MutationKind> kinds = {dropEach("wait dropped", 10, false),
                                     dropEach("wait on the step before dropped", 24, true),
                                     fillTwice()};
  for (const auto& more : {placeMutations(), tempMutations(), claimMutations()}) {
    kinds.insert(kinds.end(), more.begin(), more.end());
  }
  return kinds;
}

}  // namespace stowage::tests
