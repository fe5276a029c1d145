// SPDX-License-Identifier: Apache-2.0
#include "planner/correct/step_stalls.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "ir/text/parser.h"
#include "planner/correct/correct_costs.h"
#include "planner/correct/typical_times.h"
#include "tests/support/or_fail.h"
#include "tests/unit/planner/correct/measured_step.h"

namespace stowage::tests {
namespace {

using ir::StepTimes;
using planner::Stall;
using planner::StallCause;

void expectStall(const Stall& stall, size_t command, StallCause cause, int64_t time) {
  EXPECT_EQ(stall.command, ir::CommandId(command));
  EXPECT_EQ(stall.cause, cause) << planner::stallCauseName(stall.cause);
  EXPECT_EQ(stall.time, Nanoseconds(time));
}

TEST(StepStalls, DividesAWaitAmongItsCauses) {
  const ir::Schedule schedule = makeSchedule();
  const std::vector<Stall> stalls = planner::findStalls(schedule, makeStep(0, 0), nullptr);
  ASSERT_EQ(stalls.size(), 4U);
  expectStall(stalls[0], kReader, StallCause::kHostToDevice, 30);
  EXPECT_EQ(stalls[0].awaited, ir::CommandId(kPrefetch));
  EXPECT_EQ(stalls[0].begin, Nanoseconds(20));
  expectStall(stalls[1], kReader, StallCause::kLaunchLatency, 2);
  EXPECT_FALSE(stalls[1].awaited.isValid());
  expectStall(stalls[2], kLast, StallCause::kLaunchOverhead, 10);
  expectStall(stalls[3], kLast, StallCause::kLaunchLatency, 3);
}

TEST(StepStalls, SeesWhatTheStepBeforeLeftBehind) {
  const ir::Schedule schedule = makeSchedule();
  const StepTimes before = makeStep(0, 0);
  // First launch: 115. Of the step before, the copy ended at 110 and the last launch at 100.
  const std::vector<Stall> stalls = planner::findStalls(schedule, makeStep(1, 105), &before);
  ASSERT_GE(stalls.size(), 2U);
  expectStall(stalls[0], kFirst, StallCause::kDeviceToHost, 10);
  EXPECT_EQ(stalls[0].awaited, ir::CommandId(kOffload));
  expectStall(stalls[1], kFirst, StallCause::kLaunchLatency, 5);
}

TEST(StepStalls, CommandsThatLeftNoTraceCauseNothing) {
  const ir::Schedule schedule = makeSchedule();
  StepTimes step = makeStep(0, 0);
  step.commands[kPrefetch].reset();
  step.commands[kLast].reset();
  const std::vector<Stall> stalls = planner::findStalls(schedule, step, nullptr);
  ASSERT_EQ(stalls.size(), 1U);
  expectStall(stalls[0], kReader, StallCause::kLaunchLatency, 32);
}

TEST(StepStalls, SumsUpWholeSteps) {
  const ir::Schedule schedule = makeSchedule();
  const std::vector<StepTimes> steps = {makeStep(1, 0), makeStep(2, 200)};
  const planner::StepSummary sum = planner::summarize(schedule, steps);
  EXPECT_EQ(sum.steps, 2);
  EXPECT_EQ(sum.period, Nanoseconds(200));
  EXPECT_EQ(sum.busy[static_cast<size_t>(ir::Stream::kCompute)], Nanoseconds(45));
  EXPECT_EQ(sum.busy[static_cast<size_t>(ir::Stream::kDeviceToHost)], Nanoseconds(90));
  EXPECT_EQ(sum.stalls[static_cast<size_t>(StallCause::kHostToDevice)], Nanoseconds(30));
  EXPECT_EQ(sum.launchOverhead, Nanoseconds(5));
  EXPECT_EQ(planner::summarize(schedule, {}).steps, 0);
}

TEST(StepStalls, TellsHowFarCopiesAreHiddenThatWereToBe) {
  const ir::Schedule schedule = makeSchedule();
  const std::vector<StepTimes> measured = {makeStep(1, 0), makeStep(2, 105)};
  std::vector<StepTimes> predicted = measured;
  EXPECT_EQ(planner::hiddenShare(schedule, predicted, measured), std::nullopt);
  for (size_t s = 0; s < 2; ++s) predicted[s].commands[kPrefetch]->end = Nanoseconds(105 * s + 15);
  // 40 each, waited for by 30 each.
  EXPECT_NEAR(*planner::hiddenShare(schedule, predicted, measured), 0.25, 1e-9);
  predicted[0].commands[kOffload]->end = Nanoseconds(90);
  // And 90 each, of which 10 once.
  EXPECT_NEAR(*planner::hiddenShare(schedule, predicted, measured), 1 - 70.0 / 260, 1e-9);
  EXPECT_NEAR(*planner::hiddenShare(schedule, predicted, predicted), 1, 1e-9);
}

TEST(StepStalls, ACopyThatIsLateIsNotHiddenAtAll) {
  const ir::Schedule schedule = makeSchedule();
  std::vector<StepTimes> predicted = {makeStep(1, 0)};
  predicted[0].commands[kPrefetch]->end = Nanoseconds(15);
  std::vector<StepTimes> late = {makeStep(1, 0)};
  late[0].commands[kOffload].reset();
  late[0].commands[kPrefetch]->begin = Nanoseconds(48);  // compute waits for it from 20 to 50
  EXPECT_EQ(planner::hiddenShare(schedule, predicted, late), 0.0);
}

TEST(StepStalls, CorrectedCostsKeepWorkAndLaunchOverheadApart) {
  const ir::Graph graph =
      orFail(ir::parseGraph("graph @g version=1 device=\"cpu\" {\n"
                            "input %x : f32[64]\n"
                            "%y : f32[64] = aten.neg.default(%x)\n"
                            "%z : f32[64] = aten.neg.default(%y)\n"
                            "%u : f32[64] = aten.exp.default(%z)\n}\n"));
  ir::Schedule schedule;
  schedule.commands.resize(3);
  ir::CostTable table;
  for (size_t i = 0; i < 3; ++i) {
    schedule.commands[i].node = ir::NodeId(i);
    table.bySignature[ir::nodeSignature(graph, ir::NodeId(i))] = {.work = Nanoseconds(1),
                                                                  .launch = Nanoseconds(2)};
  }
  table.bySignature[ir::nodeSignature(graph, ir::NodeId(2))].launch = Nanoseconds(50);
  const planner::TypicalTimes times = {.work = {Nanoseconds(10), Nanoseconds(20), Nanoseconds(7)},
                                       .launch = {std::nullopt, Nanoseconds(8), std::nullopt}};
  const ir::CostTable corrected =
      planner::correctTimes(table, graph, schedule, times, /*launchShare=*/0.5);
  const ir::OpCost& neg = corrected.bySignature.at(ir::nodeSignature(graph, ir::NodeId(0)));
  EXPECT_EQ(neg.work, Nanoseconds(15));
  EXPECT_EQ(neg.launch, Nanoseconds(4));
  const ir::OpCost& exp = corrected.bySignature.at(ir::nodeSignature(graph, ir::NodeId(2)));
  EXPECT_EQ(exp.work, Nanoseconds(7));
  EXPECT_EQ(exp.launch, Nanoseconds(25)) << "never seen: half of what it is alone";
  const planner::TypicalTimes silent = {.work = {Nanoseconds(10), Nanoseconds(20), std::nullopt},
                                        .launch = {std::nullopt, Nanoseconds(8), std::nullopt}};
  const ir::CostTable without = planner::correctTimes(table, graph, schedule, silent);
  const ir::OpCost& nothing = without.bySignature.at(ir::nodeSignature(graph, ir::NodeId(2)));
  EXPECT_EQ(nothing.work, Nanoseconds(1));
  EXPECT_EQ(nothing.launch, Nanoseconds(0)) << "it launched nothing";
}

TEST(StepStalls, LaunchOverheadThatWasNotSeenIsScaledLikeThatSeen) {
  const ir::Graph graph =
      orFail(ir::parseGraph("graph @g version=1 device=\"cpu\" {\n"
                            "input %x : f32[64]\n"
                            "%y : f32[64] = aten.neg.default(%x)\n"
                            "%z : f32[64] = aten.exp.default(%y)\n"
                            "%u : f32[64] = aten.sin.default(%z)\n}\n"));
  const ir::NodeId neg(0);
  const ir::NodeId exp(1);
  const ir::NodeId sin(2);
  ir::CostTable table;
  table.links.launch = Nanoseconds(100);
  table.bySignature[ir::nodeSignature(graph, neg)].launch = Nanoseconds(2);
  table.bySignature[ir::nodeSignature(graph, exp)].launch = Nanoseconds(50);
  table.bySignature[ir::nodeSignature(graph, sin)] = {};  // of a file without launch overhead
  const auto launchWhen = [&](size_t launches) {
    ir::Schedule schedule;
    schedule.commands.resize(launches + 2);
    planner::TypicalTimes times = {.launch = {launches, Nanoseconds(8)}};
    for (ir::Command& command : schedule.commands) command.node = neg;
    schedule.commands[launches].node = exp;
    times.launch.emplace_back(std::nullopt);
    schedule.commands[launches + 1].node = sin;
    times.launch.emplace_back(Nanoseconds(1000));
    times.work.assign(launches + 2, Nanoseconds(1));
    const ir::CostTable corrected =
        planner::correctTimes(table, graph, schedule, times, /*launchShare=*/0.5);
    return std::pair(corrected.bySignature.at(ir::nodeSignature(graph, exp)).launch,
                     corrected.links.launch);
  };
  EXPECT_EQ(launchWhen(16), std::pair(Nanoseconds(100), Nanoseconds(200)));
  EXPECT_EQ(launchWhen(15), std::pair(Nanoseconds(25), Nanoseconds(50))) << "too few to tell";
}

TEST(StepStalls, CorrectedCostsHoldTheLaunchOverheadOfACopy) {
  ir::Schedule schedule;
  schedule.residencies.push_back({.storage = ir::StorageId(0)});
  constexpr size_t kCopies = 20;
  for (size_t i = 0; i < kCopies; ++i) {
    ir::Command& copy = schedule.commands.emplace_back();
    copy.kind = ir::CommandKind::kCopy;
    copy.stream = ir::Stream::kDeviceToHost;
    copy.from = ir::ResidencyId(0);
  }
  const ir::Graph graph =
      orFail(ir::parseGraph("graph @g version=1 device=\"cpu\" {\ninput %x : f32[64]\n"
                            "%y : f32[64] = aten.neg.default(%x)\n}\n"));
  ir::CostTable table;
  table.links.launch = Nanoseconds(100);
  planner::TypicalTimes times;
  times.work.resize(kCopies);
  for (size_t i = 0; i < kCopies; ++i) {
    times.launch.push_back(i == 5 ? std::nullopt : std::optional(Nanoseconds(i < 10 ? 10 : 19)));
  }
  const auto launchAfter = [&](double share) {
    return planner::correctTimes(table, graph, schedule, times, share).links.launch;
  };
  EXPECT_EQ(launchAfter(1), Nanoseconds(15));
  EXPECT_EQ(launchAfter(0.5), Nanoseconds(7));
  std::fill_n(times.launch.begin(), 10, std::nullopt);
  EXPECT_EQ(launchAfter(0.5), Nanoseconds(50)) << "too few: half of what it is alone";
}

/// Copies of a large storage and of a small one, three each way; the rates after they took that
/// long (ns), the alone ones 7 and 8 bytes a second.
ir::LinkModel linksAfter(Nanoseconds latency, std::array<int64_t, 3> out,
                         std::array<int64_t, 3> in) {
  const ir::Graph graph =
      orFail(ir::parseGraph("graph @g version=1 device=\"cpu\" {\n"
                            "input %x : f32[2097152]\n"
                            "input %y : f32[1]\n"
                            "%z : f32[2097152] = aten.add.Tensor(%x, %y)\n}\n"));
  ir::Schedule schedule;
  schedule.residencies.resize(2);
  for (size_t i = 0; i < 2; ++i) schedule.residencies[i].storage = ir::StorageId(i);
  planner::TypicalTimes times;
  const auto add = [&](ir::Stream stream, std::array<int64_t, 3> durations) {
    for (size_t i = 0; i < 3; ++i) {
      ir::Command& command = schedule.commands.emplace_back();
      command.kind = ir::CommandKind::kCopy;
      command.stream = stream;
      command.from = ir::ResidencyId(i < 2 ? 0 : 1);  // large, large, small
      times.work.push_back(durations[i] < 0 ? std::nullopt
                                            : std::optional(Nanoseconds(durations[i])));
      times.launch.push_back(std::nullopt);
    }
  };
  add(ir::Stream::kDeviceToHost, out);
  add(ir::Stream::kHostToDevice, in);
  ir::CostTable table;
  table.links.deviceToHost = {BytesPerSecond(7), latency};
  table.links.hostToDevice = {BytesPerSecond(8), latency};
  return planner::correctTimes(table, graph, schedule, times).links;
}

TEST(StepStalls, CorrectedCostsHoldTheRatesThatLinksHadInSteps) {
  constexpr int64_t kBytes = int64_t{16} << 20;  // of two large copies
  // 16 MiB in 2 ms, latencies taken off, and in 1 ms; the small copies' time is no rate.
  const ir::LinkModel links =
      linksAfter(Nanoseconds(100'000), {1'500'000, 700'000, 900'000}, {600'000, 600'000, 100'000});
  EXPECT_EQ(links.deviceToHost.bandwidth, BytesPerSecond(kBytes * 500));
  EXPECT_EQ(links.hostToDevice.bandwidth, BytesPerSecond(kBytes * 1000));
}

TEST(StepStalls, FewBytesSayNothingOfALink) {
  // Half of it was never timed; then only the small copy was, without a latency to compare with.
  const ir::LinkModel links = linksAfter(Nanoseconds(0), {1'000'000, -1, 1'500}, {-1, -1, 1'500});
  EXPECT_EQ(links.deviceToHost.bandwidth, BytesPerSecond(7));
  EXPECT_EQ(links.hostToDevice.bandwidth, BytesPerSecond(8));
}

}  // namespace
}  // namespace stowage::tests
