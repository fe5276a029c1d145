// SPDX-License-Identifier: Apache-2.0
//
// Plan files that were edited and still are well-formed, for the same graph and target. Each is
// refused by the reader or the verifier, or it runs: on the CPU with real ops, and on the fake
// device under random delays, with the bits of the unplanned step. More with STOWAGE_PLAN_MUTANTS
// (of each kind and plan).
#include <gtest/gtest.h>
#include <llvm/ADT/STLExtras.h>

#include <cstdlib>
#include <map>
#include <string>

#include "ir/text/parser.h"
#include "ir/verify/verify.h"
#include "passes/plan_step.h"
#include "passes/planned_file.h"
#include "planner/files/plan_json.h"
#include "runtime/calibrate/calibrate.h"
#include "runtime/fake/fake_device.h"
#include "runtime/torch/deterministic_mode.h"
#include "tests/property/plan_file_mutations.h"
#include "tests/support/cpu_training.h"
#include "tests/support/fake_training.h"
#include "tests/support/or_fail.h"
#include "tests/support/random_graph.h"
#include "tests/support/sample_graph.h"

namespace stowage::tests {
namespace {

constexpr uint64_t kPlans = 9;
constexpr size_t kKinds = 60;  // at least
constexpr int kSteps = 2;
constexpr int64_t kMostArena = int64_t{64} << 20;

int mutantsOfEachKind() {
  const char* asked = std::getenv("STOWAGE_PLAN_MUTANTS");
  return asked == nullptr ? 4 : std::atoi(asked);
}

/// A small training step of real ops, with a plan under a tight budget.
class Original {
 public:
  explicit Original(uint64_t seed)
      : seed_(seed), target_(makeTestTarget()), step_(makeStep(seed)), table_(makeTable()) {
    const passes::PlanStepOptions options = {.budget = chooseBudget()};
    passes::PlannedStep planned = orFail(passes::planStep(step_, target_, table_, options));
    planner::PlanFile file = passes::makePlanFile(planned, target_, options);
    file.stowageVersion = "0.1.0";
    file.graph.file = "step.stow";
    file.costs = {.fingerprint = "xxh3:0", .source = ir::CostSource::kGiven, .file = ""};
    graph_ = std::move(planned.graph);
    costs_ = orFail(ir::resolveCosts(graph_, table_));
    std::string text;
    llvm::raw_string_ostream os(text);
    EXPECT_EQ(ir::describe(planner::writePlan(file, os)), "");
    plan_ = PlanJson::parse(os.str());
  }

  const PlanJson& plan() const { return plan_; }

  /// The file, when it can be read and is for this graph.
  std::optional<planner::PlanFile> read(const PlanJson& mutant) const {
    ir::Expected<planner::PlanFile> file = planner::readPlan(mutant.dump(), "mutant.json");
    if (!file) return forget(file.takeError());
    if (ir::Error error = planner::checkPlanGraph(*file, graph_)) return forget(std::move(error));
    return std::move(*file);
  }

  std::vector<ir::Violation> verify(const planner::PlanFile& file) const {
    return ir::verify({.graph = graph_,
                       .schedule = file.schedule,
                       .target = file.target,
                       .costs = &costs_,
                       .budget = file.budget,
                       .hostLimit = file.hostLimit});
  }

  /// "" or how the run differs from the unplanned step.
  std::string run(const planner::PlanFile& file) const {
    runtime::CpuDeviceOptions options;
    options.deviceBytes = file.schedule.arenaBytes(ir::Space::kDevice);
    options.hostBytes = file.schedule.arenaBytes(ir::Space::kHost);
    options.intraOpThreads = 1;
    if (std::max(options.deviceBytes, options.hostBytes) > Bytes(kMostArena)) return "";
    if (!isForTheCpuDevice(file.schedule)) return runDelayed(file);
    auto device = runtime::CpuDevice::open(options);
    if (!device) return ir::describe(device.takeError());
    const std::string difference = compareWithReplay(
        **device, {graph_, file.schedule, file.target, &costs_, nullptr}, {.steps = kSteps});
    return difference.empty() ? runDelayed(file) : difference;
  }

  /// The same without real ops, with random delays.
  std::string runDelayed(const planner::PlanFile& file) const {
    runtime::FakeDevice device(file.schedule.arenas,
                               {.seed = seed_, .most = Nanoseconds(100'000), .commands = {}});
    const std::string difference = compareWithReference(
        device, {graph_, file.schedule, file.target, &costs_, nullptr}, kSteps);
    return difference.empty() ? "" : "with delays: " + difference;
  }

 private:
  /// It has no disk, and says so.
  static bool isForTheCpuDevice(const ir::Schedule& schedule) {
    return schedule.arenaBytes(ir::Space::kDisk) == Bytes(0);
  }

  static std::nullopt_t forget(ir::Error error) {
    (void)ir::takePayload(std::move(error));
    return std::nullopt;
  }

  /// Every third has dropout, batch norm and in-place ops, whatever the seed.
  static ir::Graph makeStep(uint64_t seed) {
    if (seed % 3 == 2) return orFail(ir::parseGraph(kSampleGraph));
    return makeRandomStep(seed,
                          {.maxLayers = 2, .maxWidth = 64, .maxRows = 16, .maxMicroBatches = 1});
  }

  /// Times from the seed, the same on every machine; temporaries as these ops really need them.
  ir::CostTable makeTable() const {
    runtime::CalibrateOptions calibration;
    calibration.runs = 1;
    const ir::CostTable measured = orFail(runtime::calibrate(step_, calibration));
    ir::CostTable table = makeRandomCosts(step_, seed_);
    for (auto& [signature, row] : table.bySignature) {
      const ir::OpCost& real = measured.bySignature.at(signature);
      row.temporary = real.temporary;
      row.allocations = real.allocations;
      row.resultOrdinals = real.resultOrdinals;
    }
    return table;
  }

  Bytes chooseBudget() const {
    ir::Expected<passes::PlannedStep> infeasible =
        passes::planStep(step_, target_, table_, {.budget = Bytes(1)});
    EXPECT_FALSE(infeasible);
    if (infeasible) return Bytes(1);
    const ir::PlanError answer = ir::takePayload(infeasible.takeError());
    if (!answer.infeasible()) {
      ADD_FAILURE() << answer.text();
      return Bytes(1);
    }
    const int64_t smallest = answer.infeasible()->smallestBudget.value();
    return Bytes(seed_ % 3 == 0 ? smallest : smallest + (seed_ % 3) * smallest / 6);
  }

  uint64_t seed_;
  ir::Target target_;
  ir::Graph step_;
  ir::CostTable table_;
  ir::Graph graph_;  // in the plan's order
  ir::NodeCosts costs_;
  PlanJson plan_;
};

struct Tally {
  int made = 0;
  int unreadable = 0;
  int refused = 0;
  int accepted = 0;
};

void print(const std::map<std::string, Tally>& tallies) {
  Tally all;
  for (const auto& [name, tally] : tallies) {
    std::printf("%-42s %5d made, %5d unreadable, %5d refused, %5d ran\n", name.c_str(), tally.made,
                tally.unreadable, tally.refused, tally.accepted);
    all.made += tally.made;
    all.unreadable += tally.unreadable;
    all.refused += tally.refused;
    all.accepted += tally.accepted;
  }
  std::printf("%zu kinds, %d mutants: %d unreadable, %d refused, %d ran\n", tallies.size(),
              all.made, all.unreadable, all.refused, all.accepted);
}

TEST(PlanFileMutation, WhatTheVerifierAcceptsGivesTheBitsOfTheUnplannedStep) {
  runtime::setDeterministicMode(true);
  const std::vector<PlanFileMutation> kinds = planFileMutations();
  std::map<std::string, Tally> tallies;
  for (uint64_t seed = 0; seed < kPlans; ++seed) {
    const Original original(seed);
    const std::optional<planner::PlanFile> unchanged = original.read(original.plan());
    ASSERT_TRUE(unchanged.has_value()) << "seed " << seed;
    ASSERT_TRUE(original.verify(*unchanged).empty()) << "seed " << seed;
    ASSERT_EQ(original.run(*unchanged), "") << "seed " << seed;
    for (size_t k = 0; k < kinds.size(); ++k) {
      Tally& tally = tallies[kinds[k].name];
      for (int i = 0; i < mutantsOfEachKind(); ++i) {
        Random random(seed * 1'000'003 + k * 1009 + static_cast<uint64_t>(i));
        random.bits();
        PlanJson mutant = original.plan();
        if (!kinds[k].change(mutant, random) || mutant == original.plan()) continue;
        ++tally.made;
        const std::optional<planner::PlanFile> file = original.read(mutant);
        if (!file) {
          ++tally.unreadable;
        } else if (!original.verify(*file).empty()) {
          ++tally.refused;
        } else {
          ++tally.accepted;
          EXPECT_EQ(original.run(*file), "")
              << kinds[k].name << ", seed " << seed << ", mutant " << i << "\n"
              << mutant.dump();
        }
      }
    }
  }
  print(tallies);
  EXPECT_GE(tallies.size(), kKinds);
  int accepted = 0;
  int refused = 0;
  for (const auto& [name, tally] : tallies) {
    EXPECT_GT(tally.made, 0) << name << " never had a place";
    accepted += tally.accepted;
    refused += tally.refused;
  }
  // Both answers occur often, or this tests one of them.
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, accepted);
}

/// The comparison notices plans that are wrong: most of those that break a rule about order or
/// shared bytes give other bits under some delay.
TEST(PlanFileMutation, PlansThatBreakARuleGiveOtherBits) {
  const std::vector<PlanFileMutation> kinds = commandMutations();
  int broken = 0;
  int different = 0;
  const Original original(1);
  for (size_t k = 0; k < kinds.size(); ++k) {
    Random random(k);
    PlanJson mutant = original.plan();
    if (!kinds[k].change(mutant, random)) continue;
    const std::optional<planner::PlanFile> file = original.read(mutant);
    if (!file) continue;
    const std::vector<ir::Violation> violations = original.verify(*file);
    const bool isAboutOrder = std::all_of(
        violations.begin(), violations.end(),
        [](const ir::Violation& v) { return (v.rule >= 10 && v.rule <= 13) || v.rule == 24; });
    if (violations.empty() || !isAboutOrder) continue;
    ++broken;
    if (!original.runDelayed(*file).empty()) ++different;
  }
  std::printf("%d plans break a rule about order, %d give other bits\n", broken, different);
  EXPECT_GT(different, 0);
}

}  // namespace
}  // namespace stowage::tests
