// SPDX-License-Identifier: Apache-2.0
//
// The dynamic twin of the verifier, sharing nothing with it: valid schedules (moves, recompute,
// in-place reuse, tails, temp regions, disk) of random steps on the fake device, under random
// delays, equal the plain execution; a schedule made wrong does not.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ir/base/interval.h"
#include "ir/verify/verify.h"
#include "runtime/fake/fake_device.h"
#include "tests/support/fake_training.h"
#include "tests/support/keep_all_schedule.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_schedule.h"

namespace stowage::tests {
namespace {

struct Case {
  ir::Graph graph;
  ir::Target target = makeTestTarget();
  ir::NodeCosts costs;
  ir::Schedule schedule;
};

Case makeCase(uint64_t seed) {
  RandomStepOptions options;
  options.maxWidth = 48;
  options.maxLayers = 3;
  Case made{seed % 2 == 0 ? makeRandomStep(seed, options) : makeTinyGraph(seed)};
  made.costs = *resolveCosts(made.graph, makeRandomCosts(made.graph, seed));
  made.schedule = makeRandomSchedule(made.graph, made.target, randomStyle(seed));
  return made;
}

std::string run(const Case& c, const ir::Schedule& schedule, runtime::FakeDelays delays,
                int steps = 3) {
  runtime::FakeDevice device(schedule.arenas, std::move(delays));
  return compareWithReference(device, {c.graph, schedule, c.target, &c.costs, nullptr}, steps);
}

Nanoseconds longest(const Case& c) {
  Nanoseconds most;
  for (size_t i = 0; i < c.costs.nodes.size(); ++i) {
    most = std::max(most, c.costs.time(ir::NodeId(i)));
  }
  return most;
}

TEST(FakeSchedule, KeepAllSchedulesEqualThePlainExecution) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Case c = makeCase(seed);
    c.schedule = makeKeepAllSchedule(c.graph, c.target, &c.costs);
    EXPECT_EQ(run(c, c.schedule, {seed, longest(c), {}}), "") << "seed " << seed;
  }
}

TEST(FakeSchedule, ValidSchedulesEqualThePlainExecutionUnderAnyDelays) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Case c = makeCase(seed);
    for (uint64_t delay = 0; delay < 4; ++delay) {
      EXPECT_EQ(run(c, c.schedule, {delay, longest(c) * static_cast<int64_t>(delay), {}}), "")
          << "seed " << seed << ", delays " << delay;
    }
  }
}

// --- schedules made wrong

/// Small schedules without a wait too many, so that leaving one out matters.
Case makeThinCase(uint64_t seed) {
  RandomStepOptions options;
  options.maxLayers = 1;
  options.maxMicroBatches = 1;
  options.maxWidth = 32;
  Case c{makeRandomStep(seed, options)};
  c.costs = *resolveCosts(c.graph, makeRandomCosts(c.graph, seed));
  ScheduleStyle style = randomStyle(seed);
  style.thinWaits = true;
  style.serialWaits = false;
  c.schedule = makeRandomSchedule(c.graph, c.target, style);
  return c;
}

constexpr Nanoseconds kLong{1'000'000'000'000};
constexpr Nanoseconds kShort{1'000'000'000};

/// Wrong as it is, or when one command at a time is held up for long, and `late` for a shorter
/// time: what it needs may be gone again by then.
bool isCaught(const Case& c, const ir::Schedule& schedule, int32_t late) {
  if (!run(c, schedule, {}).empty()) return true;
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    const auto heldUp = static_cast<int32_t>(i);
    if (!run(c, schedule, {0, Nanoseconds(0), {{heldUp, kLong}}}).empty()) return true;
    if (late < 0 || late == heldUp) continue;
    const runtime::FakeDelays both{0, Nanoseconds(0), {{heldUp, kLong}, {late, kShort}}};
    if (!run(c, schedule, both).empty()) return true;
  }
  return false;
}

/// What the verifier says, less what a schedule claims of itself and what harms no byte.
std::string judgeStatically(const Case& c, const ir::Schedule& schedule) {
  for (const ir::Violation& violation : ir::verify({c.graph, schedule, c.target, nullptr, {}})) {
    static const std::set<int> kHarmless = {20, 21, 30, 31};
    if (kHarmless.count(violation.rule) == 0) return violation.message;
  }
  return "";
}

struct Tally {
  int wrong = 0;
  int missed = 0;
  std::string missedOnes;
};

/// `late`: the command whose need was changed; -1: none in particular.
void judge(const Case& c, const ir::Schedule& changed, int32_t late, Tally& tally,
           const std::string& what) {
  const std::string wrong = judgeStatically(c, changed);
  if (wrong.empty()) {
    EXPECT_EQ(run(c, changed, {1, longest(c), {}}), "") << what << ": valid, but fails";
    return;
  }
  ++tally.wrong;
  if (isCaught(c, changed, late)) return;
  ++tally.missed;
  tally.missedOnes += what + ": " + wrong + "\n";
}

/// Bytes may come out right by luck: where a storage's own bytes of before still lie.
void expectNearlyAllCaught(const Tally& tally, int atLeast) {
  EXPECT_GE(tally.wrong, atLeast);
  EXPECT_LE(tally.missed * 50, tally.wrong) << tally.missedOnes;
}

template <typename Ids>
void dropOne(const Case& c, size_t command, Ids ir::Command::*waits, Tally& tally,
             const std::string& what) {
  const size_t count = (c.schedule.commands[command].*waits).size();
  for (size_t k = 0; k < count; ++k) {
    ir::Schedule changed = c.schedule;
    Ids& own = changed.commands[command].*waits;
    own.erase(own.begin() + static_cast<int64_t>(k));
    judge(c, changed, static_cast<int32_t>(command), tally, what + " c" + std::to_string(command));
  }
}

TEST(FakeSchedule, EveryWaitThatIsLeftOutShows) {
  Tally tally;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Case c = makeThinCase(seed);
    for (size_t i = 0; i < c.schedule.commands.size(); ++i) {
      const std::string what = "seed " + std::to_string(seed);
      dropOne(c, i, &ir::Command::wait, tally, what + " wait of");
      dropOne(c, i, &ir::Command::prev, tally, what + " prev of");
    }
  }
  expectNearlyAllCaught(tally, 100);
}

/// The schedule without one command; who waited for it waits for what it waited for.
ir::Schedule without(const ir::Schedule& schedule, size_t gone) {
  ir::Schedule changed = schedule;
  const ir::Command removed = schedule.commands[gone];
  const auto renumber = [&](auto& ids, const auto& instead) {
    std::set<ir::CommandId> renumbered;
    for (const ir::CommandId id : ids) {
      if (id.index() == gone)
        renumbered.insert(instead.begin(), instead.end());
      else
        renumbered.insert(id);
    }
    ids.clear();
    for (const ir::CommandId id : renumbered) {
      if (id.index() == gone) continue;
      ids.push_back(id.index() > gone ? ir::CommandId(id.index() - 1) : id);
    }
  };
  for (ir::Command& command : changed.commands) {
    renumber(command.wait, removed.wait);
    renumber(command.prev, removed.prev);
  }
  changed.commands.erase(changed.commands.begin() + static_cast<int64_t>(gone));
  return changed;
}

TEST(FakeSchedule, EveryCommandThatIsLeftOutShows) {
  Tally tally;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Case c = makeThinCase(seed);
    for (size_t i = 0; i < c.schedule.commands.size(); ++i) {
      judge(c, without(c.schedule, i), -1, tally,
            "seed " + std::to_string(seed) + " c" + std::to_string(i));
    }
  }
  expectNearlyAllCaught(tally, 200);
}

/// Outputs have left for the caller before anything can be put on them on the host, and what is put
/// there before they are made is harmed by them only if it is read later.
bool liesOnOutput(const Case& c, const ir::Schedule& schedule, size_t moved) {
  const auto range = [&](const ir::Residency& residency) {
    const int64_t bytes = roundUp(c.graph.storage(residency.storage).bytes, 512).value();
    return ir::ByteRange{residency.offset, residency.offset + bytes};
  };
  const ir::Residency& own = schedule.residencies[moved];
  if (own.space != ir::Space::kHost) return false;
  for (const ir::Residency& other : schedule.residencies) {
    if (other.space != ir::Space::kHost || !range(own).overlaps(range(other))) continue;
    if (c.graph.storage(own.storage).output || c.graph.storage(other.storage).output) return true;
  }
  return false;
}

TEST(FakeSchedule, EveryOffsetThatIsShiftedShows) {
  Tally tally;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Case c = makeThinCase(seed);
    for (size_t r = 0; r < c.schedule.residencies.size(); ++r) {
      for (const int64_t shift : {-512, 512}) {
        ir::Schedule changed = c.schedule;
        ir::Residency& residency = changed.residencies[r];
        if (residency.space == ir::Space::kDisk) continue;
        const int64_t bytes = roundUp(c.graph.storage(residency.storage).bytes, 512).value();
        residency.offset += shift;
        if (residency.offset < 0 ||
            residency.offset + bytes > changed.arenaBytes(residency.space).value()) {
          continue;
        }
        if (liesOnOutput(c, changed, r)) continue;
        judge(c, changed, -1, tally, "seed " + std::to_string(seed) + " r" + std::to_string(r));
      }
    }
  }
  expectNearlyAllCaught(tally, 200);
}

}  // namespace
}  // namespace stowage::tests
