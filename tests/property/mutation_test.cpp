// SPDX-License-Identifier: Apache-2.0
//
// The mutation fuzzer: every kind of mutation at every place of a set of valid schedules. Each
// mutant must be refused, and by the rule expected. Where a dropped wait or a shifted offset may be
// harmless, an oracle that shares nothing with the verifier decides, and the two must agree: the
// verifier reports exactly when the oracle does, and no rule that the oracle does not see broken.
#include <gtest/gtest.h>
#include <llvm/ADT/STLExtras.h>

#include <map>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "passes/arrange_graph.h"
#include "passes/normalise/host_updates.h"
#include "passes/plan_step.h"
#include "tests/property/mutations.h"
#include "tests/support/byte_oracle.h"
#include "tests/support/or_fail.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_schedule.h"
#include "tests/support/sample_graph.h"

namespace stowage::tests {
namespace {

constexpr uint64_t kPlans = 20;

/// Four families in turn, so that every kind of command and wait has its places.
ScheduleStyle styleOf(uint64_t plan) {
  ScheduleStyle style = randomStyle(plan);
  style.thinWaits = true;
  style.serialWaits = false;
  if (plan % 4 == 0) {
    style.host = 900;
    style.tail = 900;
    style.joined = false;
  } else if (plan % 4 == 1) {
    style.recompute = 700;
    style.inPlaceReuse = 900;
    style.temp = 500;
  } else if (plan % 4 == 2) {
    style.host = 100;
    style.disk = 500;
    style.joined = false;
  }
  return style;
}

/// A schedule with costs and claims of time that fit it.
Case makeCase(const std::shared_ptr<const ir::Graph>& graph, uint64_t plan) {
  Case made{.graph = graph};
  made.target.profile = "cpu";
  made.target.alignBytes = 64;
  made.target.reserved = {{.what = "workspace", .bytes = Bytes(256)}};
  made.schedule = makeRandomSchedule(*graph, made.target, styleOf(plan));
  made.budget = made.schedule.arenaBytes(ir::Space::kDevice);
  ir::NodeCosts costs;
  costs.nodes.assign(graph->nodes().size(),
                     {.work = Nanoseconds(1000), .temporary = Bytes(INT32_MAX)});
  costs.links.deviceToHost.bandwidth = BytesPerSecond(1'000'000'000'000);
  costs.links.hostToDevice.bandwidth = BytesPerSecond(1'000'000'000'000);
  costs.links.diskRead.bandwidth = BytesPerSecond(1'000'000'000'000);
  costs.links.diskWrite.bandwidth = BytesPerSecond(1'000'000'000'000);
  int64_t launches = 0;
  for (const ir::Command& command : made.schedule.commands) {
    if (command.kind != ir::CommandKind::kRun) continue;
    ++launches;
    Bytes& need = costs.nodes[command.node.index()].temporary;
    need = std::min(need, command.temp.bytes);
  }
  made.costs = std::make_shared<ir::NodeCosts>(costs);
  made.schedule.predicted.computeTime =
      Nanoseconds(1000 * static_cast<int64_t>(graph->nodes().size()));
  made.schedule.predicted.stepTime = Nanoseconds(1000 * launches);
  made.schedule.predicted.bound = made.schedule.predicted.computeTime;
  return made;
}

std::set<int> rulesOf(const std::vector<ir::Violation>& violations) {
  std::set<int> rules;
  for (const ir::Violation& violation : violations) rules.insert(violation.rule);
  return rules;
}

std::string toText(const std::set<int>& rules) {
  std::string text;
  for (const int rule : rules) text += " V" + std::to_string(rule);
  return text.empty() ? " nothing" : text;
}

struct Tally {
  int sites = 0;
  int harmless = 0;
  std::map<int, int> caughtBy;  // rule aimed at or found by the oracle -> mutants
};

class Fuzzer {
 public:
  void run(const MutationKind& kind, const Case& original, uint64_t seed) {
    kind.forEachSite(original, [&](const Mutant& mutant) {
      const auto violations = ir::verify(mutant.changed.input());
      const std::set<int> found = rulesOf(violations);
      Tally& tally = tallies_[kind.name];
      ++tally.sites;
      std::string complaint;
      if (mutant.expected.empty()) {
        complaint = compareWithOracle(mutant, found, tally);
      } else {
        complaint = compareWithExpected(mutant, found, tally);
      }
      if (complaint.empty() || ++complaints_ > 20) return;
      ADD_FAILURE() << kind.name << " at " << mutant.site << ", seed " << seed << ": " << complaint
                    << "\n"
                    << explain(violations)
                    << ir::toText(*mutant.changed.graph, mutant.changed.schedule);
    });
  }

  void print() const {
    int sites = 0;
    int harmless = 0;
    for (const auto& [name, tally] : tallies_) {
      std::string caught;
      for (const auto& [rule, count] : tally.caughtBy) {
        caught += " V" + std::to_string(rule) + ":" + std::to_string(count);
      }
      std::printf("%-52s %6d sites, %5d harmless,%s\n", name.c_str(), tally.sites, tally.harmless,
                  caught.c_str());
      sites += tally.sites;
      harmless += tally.harmless;
    }
    std::printf("%zu kinds, %d mutants, %d proven harmless\n", tallies_.size(), sites, harmless);
  }

  int caughtBy(int rule) const {
    int count = 0;
    for (const auto& [name, tally] : tallies_) {
      const auto found = tally.caughtBy.find(rule);
      if (found != tally.caughtBy.end()) count += found->second;
    }
    return count;
  }

 private:
  static std::string explain(const std::vector<ir::Violation>& violations) {
    std::string text;
    for (const ir::Violation& violation : violations) {
      text += "V" + std::to_string(violation.rule) + ": " + violation.message + "\n";
    }
    return text;
  }

  static std::string compareWithExpected(const Mutant& mutant, const std::set<int>& found,
                                         Tally& tally) {
    for (const int rule : mutant.expected) {
      if (found.count(rule) == 0) continue;
      ++tally.caughtBy[rule];
      return "";
    }
    return "expected" + toText(mutant.expected) + ", found" + toText(found);
  }

  static std::string compareWithOracle(const Mutant& mutant, std::set<int> found, Tally& tally) {
    found.erase(20);  // a shifted offset also moves the peak
    const std::set<int> truth =
        judgeBytes(mutant.changed.schedule, *mutant.changed.graph, mutant.changed.target);
    const bool isSubset = std::includes(truth.begin(), truth.end(), found.begin(), found.end());
    if (truth.empty() && found.empty()) ++tally.harmless;
    for (const int rule : found) ++tally.caughtBy[rule];
    if (isSubset && truth.empty() == found.empty()) return "";
    return "the oracle says" + toText(truth) + ", found" + toText(found);
  }

  std::map<std::string, Tally> tallies_;
  int complaints_ = 0;
};

std::shared_ptr<const ir::Graph> parseSample() {
  auto graph = ir::parseGraph(kSampleGraph);
  if (!graph) {
    ADD_FAILURE() << ir::describe(graph.takeError());
    return nullptr;
  }
  return std::make_shared<ir::Graph>(std::move(*graph));
}

/// A training step from the generator of steps: the smallest of a few, as the oracle is slow.
std::shared_ptr<const ir::Graph> makeSmallStep(uint64_t seed) {
  std::shared_ptr<const ir::Graph> smallest;
  for (uint64_t attempt = 0; attempt < 20; ++attempt) {
    auto graph = std::make_shared<ir::Graph>(
        makeRandomStep(seed * 1000 + attempt, {.maxLayers = 1, .maxMicroBatches = 1}));
    if (!smallest || graph->nodes().size() < smallest->nodes().size()) smallest = graph;
  }
  return smallest;
}

std::vector<MutationKind> allKinds() {
  std::vector<MutationKind> kinds = shapeMutations();
  for (const auto& more : {dataMutations(), bytesMutations()}) {
    kinds.insert(kinds.end(), more.begin(), more.end());
  }
  return kinds;
}

TEST(Mutation, EveryMutantIsRefusedByTheRuleExpected) {
  const auto graph = parseSample();
  ASSERT_NE(graph, nullptr);
  Fuzzer fuzzer;
  for (uint64_t seed = 0; seed < kPlans; ++seed) {
    const Case original = makeCase(seed % 5 == 4 ? makeSmallStep(seed) : graph, seed);
    ASSERT_EQ(toText(rulesOf(ir::verify(original.input()))), " nothing") << "seed " << seed;
    ASSERT_EQ(toText(judgeBytes(original.schedule, *original.graph, original.target)), " nothing")
        << "seed " << seed;
    for (const MutationKind& kind : allKinds()) fuzzer.run(kind, original, seed);
  }
  fuzzer.print();
  for (int rule = 1; rule <= 31; ++rule) {
    if (rule == 29) continue;  // about ranks: no counterpart in one schedule
    EXPECT_GT(fuzzer.caughtBy(rule), 0) << "no mutant was caught by V" << rule;
  }
}

/// Nothing moves but between device and host; all updates on the host; whatever may go to disk is
/// sent there; the step of one of two ranks.
enum class Tier : uint8_t { kDevice, kHostUpdates, kDisk, kRanks };

/// The updates of some steps are none that the host may do.
std::shared_ptr<const ir::Graph> withHostUpdates(const ir::Graph& graph) {
  passes::PassState state;
  state.graph = graph;
  orFail(passes::HostUpdates({100}).run(state));
  return std::make_shared<const ir::Graph>(std::move(state.graph));
}

/// What the planner answers for a small step under a tight budget.
std::optional<Case> planCase(uint64_t plan, Tier tier) {
  Case made{.target = makeTestTarget()};
  auto step =
      plan % 2 == 0 ? makeSmallStep(plan) : std::make_shared<const ir::Graph>(makeTinyGraph(plan));
  if (tier == Tier::kHostUpdates) step = withHostUpdates(*step);
  if (tier == Tier::kRanks) {
    ir::Expected<ir::Graph> ofRank = passes::graphForRanks(*step, 2);
    if (!ofRank) {
      llvm::consumeError(ofRank.takeError());
      return std::nullopt;
    }
    step = std::make_shared<const ir::Graph>(std::move(*ofRank));
  }
  const ir::CostTable costs = makeRandomCosts(*step, plan);
  passes::PlanStepOptions options{.budget = Bytes(1)};
  if (tier == Tier::kHostUpdates) options.orders = {passes::Order::kProgram};
  const auto planWith = [&] { return passes::planStep(*step, made.target, costs, options); };
  ir::Expected<passes::PlannedStep> infeasible = planWith();
  if (infeasible) return std::nullopt;
  const ir::PlanError answer = ir::takePayload(infeasible.takeError());
  options.budget = Bytes(answer.infeasible()->smallestBudget.value() * 9 / 8);
  if (tier == Tier::kDisk) {
    options.budget = Bytes(2 * options.budget.value());
    options.allowed.disk = true;
    options.limits.disk = Bytes(1 << 30);
    options.pins = {{"*", ir::GapAction::kDisk}};
    ir::Expected<passes::PlannedStep> onDisk = planWith();
    if (!onDisk) {
      llvm::consumeError(onDisk.takeError());
      return std::nullopt;
    }
  }
  // The arena ends where the schedule ends, so that a byte less is missed.
  options.budget = orFail(planWith()).result.timetable.devicePeak;
  passes::PlannedStep planned = orFail(planWith());
  made.budget = planned.result.timetable.devicePeak;
  made.costs = std::make_shared<ir::NodeCosts>(
      orFail(ir::resolveCosts(planned.graph, passes::costsOf(planned, costs))));
  made.graph = std::make_shared<ir::Graph>(std::move(planned.graph));
  made.schedule = std::move(planned.schedule);
  return made;
}

int64_t countOn(const ir::Schedule& schedule, ir::Stream stream) {
  return llvm::count_if(schedule.commands,
                        [&](const ir::Command& command) { return command.stream == stream; });
}

/// The host arena ends with the rings of a disk, of which not every byte is used.
bool mayBeHarmless(const MutationKind& kind, const ir::Schedule& schedule) {
  return llvm::StringRef(kind.name) == "arena a byte smaller" &&
         countOn(schedule, ir::Stream::kDiskRead) > 0;
}

TEST(Mutation, MutantsOfThePlannersOwnSchedulesAreRefused) {
  Fuzzer fuzzer;
  int plans = 0;
  int64_t onHost = 0;
  int64_t onDisk = 0;
  int64_t collectives = 0;
  for (uint64_t seed = 0; seed < 48; ++seed) {
    const std::optional<Case> original = planCase(seed, seed < 12   ? Tier::kDevice
                                                        : seed < 15 ? Tier::kHostUpdates
                                                        : seed < 18 ? Tier::kDisk
                                                                    : Tier::kRanks);
    if (!original) continue;
    ++plans;
    collectives += countOn(original->schedule, ir::Stream::kCollective);
    onHost += countOn(original->schedule, ir::Stream::kHostCompute);
    onDisk += countOn(original->schedule, ir::Stream::kDiskRead);
    ASSERT_EQ(toText(rulesOf(ir::verify(original->input()))), " nothing") << "seed " << seed;
    ASSERT_EQ(toText(judgeBytes(original->schedule, *original->graph, original->target)),
              " nothing")
        << "seed " << seed;
    for (const MutationKind& kind : allKinds()) {
      if (!mayBeHarmless(kind, original->schedule)) fuzzer.run(kind, *original, seed);
    }
  }
  fuzzer.print();
  EXPECT_GE(plans, 12);
  EXPECT_GT(onHost, 3);
  EXPECT_GT(onDisk, 3);
  EXPECT_GT(collectives, 10);
}

}  // namespace
}  // namespace stowage::tests
