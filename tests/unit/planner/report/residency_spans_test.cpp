// SPDX-License-Identifier: Apache-2.0
//
// Which residencies hold bytes while a command runs: of the worked step's plan, and of schedules
// written by hand for in-place reuse and for the step boundary.
#include "planner/report/residency_spans.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "planner/plan.h"
#include "tests/support/or_fail.h"
#include "tests/support/random_step.h"
#include "tests/support/worked_step.h"
#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using ir::Role;
using tests::WorkedStep;

using Units = std::vector<int64_t>;

/// By command, the units of 64 B that a group holds.
Units unitsOf(const ResidencySpans& spans, MemoryGroup group) {
  Units units;
  for (const GroupBytes& bytes : spans.bytesByCommand()) {
    units.push_back(bytes[static_cast<size_t>(group)] / tests::kUnitBytes);
  }
  return units;
}

ir::Command launch(std::vector<int> in, std::vector<int> out) {
  ir::Command command;
  for (const int id : in) command.in.push_back(ir::ResidencyId(id));
  for (const int id : out) command.out.push_back(ir::ResidencyId(id));
  return command;
}

ir::Command copy(int from, int to) {
  ir::Command command = {.kind = ir::CommandKind::kCopy};
  command.from = ir::ResidencyId(from);
  command.to = ir::ResidencyId(to);
  return command;
}

/// A graph of storages alone: what the spans ask of it are roles and sizes.
ir::Graph graphOf(std::vector<tests::SmallItem> items) {
  return tests::toGraph({.items = std::move(items), .nodes = {}});
}

/// The residencies that are there while each command runs, as "0 2".
std::vector<std::string> thereIn(const ResidencySpans& spans, const ir::Schedule& schedule) {
  std::vector<std::string> there(schedule.commands.size());
  for (size_t command = 0; command < there.size(); ++command) {
    for (size_t r = 0; r < schedule.residencies.size(); ++r) {
      if (!spans.isThere(r, static_cast<int64_t>(command))) continue;
      there[command] += (there[command].empty() ? "" : " ") + std::to_string(r);
    }
  }
  return there;
}

// In the order of enqueueing: make, offload, read, wide, prefetch, other, last. The residencies of
// a are 0 on the host, 1 until its last use before `wide`, 2 from its prefetch on.
TEST(ResidencySpans, OfTheWorkedStepsPlan) {
  const WorkedStep step;
  const PlanResult result = tests::orFail(planner::plan(step.problem(), WorkedStep::budget()));
  const ir::Schedule schedule =
      tests::toSchedule(step.graph(), step.target(), result.timetable, WorkedStep::budget());
  const ResidencySpans spans(step.graph(), schedule, step.target().alignBytes);
  EXPECT_EQ(thereIn(spans, schedule), (std::vector<std::string>{"1", "1", "1", "", "2", "2", "2"}));
  EXPECT_EQ(unitsOf(spans, MemoryGroup::kActivations), (Units{8, 8, 8, 0, 8, 8, 8}));
  EXPECT_EQ(unitsOf(spans, MemoryGroup::kTemporaries), (Units{0, 0, 0, 8, 0, 0, 0}));
  EXPECT_EQ(unitsOf(spans, MemoryGroup::kParameters), Units(7));
}

TEST(ResidencySpans, AnOperandThatTheResultReusesCountsOnce) {
  const ir::Graph graph = graphOf({{Role::kGradient, 4}, {Role::kActivation, 3}});
  ir::Schedule schedule;
  schedule.residencies = {{.storage = ir::StorageId(0)}, {.storage = ir::StorageId(1)}};
  schedule.commands = {launch({}, {0}), launch({0}, {1}), launch({1}, {})};
  const ResidencySpans apart(graph, schedule, tests::kUnitBytes);
  EXPECT_EQ(unitsOf(apart, MemoryGroup::kGradients), (Units{4, 4, 0}));
  EXPECT_EQ(unitsOf(apart, MemoryGroup::kActivations), (Units{0, 3, 3}));
  EXPECT_FALSE(ResidencySpans::isTaken(schedule.commands[1], 0));

  schedule.commands[1].takes = ir::ResidencyId(0);
  const ResidencySpans reused(graph, schedule, tests::kUnitBytes);
  EXPECT_EQ(unitsOf(reused, MemoryGroup::kGradients), (Units{4, 0, 0}));
  EXPECT_EQ(unitsOf(reused, MemoryGroup::kActivations), (Units{0, 3, 3}));
  EXPECT_TRUE(ResidencySpans::isTaken(schedule.commands[1], 0));
  EXPECT_FALSE(ResidencySpans::isTaken(schedule.commands[1], 1));
  EXPECT_TRUE(reused.isThere(0, 1)) << "its bytes are, under both names";
}

// An input's residency 1 is read first and filled last, for the next step. Between the two nothing
// is there. Residency 0 is on the host.
TEST(ResidencySpans, WhatIsReadBeforeItIsWrittenCameOverTheStepBoundary) {
  const ir::Graph graph = graphOf({{Role::kInput, 2}});
  ir::Schedule schedule;
  schedule.residencies = {{.storage = ir::StorageId(0), .space = ir::Space::kHost},
                          {.storage = ir::StorageId(0)}};
  schedule.boundary = {{.storage = ir::StorageId(0), .at = {ir::ResidencyId(0)}}};
  schedule.commands = {launch({}, {}), launch({1}, {}), launch({}, {}), copy(0, 1), launch({}, {})};
  const ResidencySpans spans(graph, schedule, tests::kUnitBytes);
  EXPECT_EQ(thereIn(spans, schedule), (std::vector<std::string>{"1", "1", "", "1", "1"}));
  EXPECT_EQ(unitsOf(spans, MemoryGroup::kActivations), (Units{2, 2, 0, 2, 2}));
}

// Residency 0 is valid at the boundary and changed in place: always there. Residency 1 is too, but
// it is written anew in each step: away until then. Residency 2 is used by nothing.
TEST(ResidencySpans, WhatIsValidAtTheStepBoundaryIsThereFromItsFirstWriteOn) {
  const ir::Graph graph =
      graphOf({{Role::kParameter, 1}, {Role::kBuffer, 2}, {Role::kActivation, 4}});
  ir::Schedule schedule;
  for (int i = 0; i < 3; ++i) schedule.residencies.push_back({.storage = ir::StorageId(i)});
  schedule.boundary = {{.storage = ir::StorageId(0), .at = {ir::ResidencyId(0)}},
                       {.storage = ir::StorageId(1), .at = {ir::ResidencyId(1)}}};
  schedule.commands = {launch({}, {}), launch({0}, {0, 1}), launch({}, {})};
  const ResidencySpans spans(graph, schedule, tests::kUnitBytes);
  EXPECT_EQ(thereIn(spans, schedule), (std::vector<std::string>{"0", "0 1", "0 1"}));
  EXPECT_EQ(unitsOf(spans, MemoryGroup::kParameters), (Units{1, 3, 3}));
  EXPECT_EQ(unitsOf(spans, MemoryGroup::kActivations), Units(3));
}

// Storages of one unit of 64 B, in an arena that counts in 512 B; temporaries are counted exactly.
TEST(ResidencySpans, BytesAreRoundedUpAndSummedByGroup) {
  const std::vector<std::pair<Role, MemoryGroup>> groups = {
      {Role::kParameter, MemoryGroup::kParameters},   {Role::kFrozen, MemoryGroup::kParameters},
      {Role::kBuffer, MemoryGroup::kParameters},      {Role::kConstant, MemoryGroup::kParameters},
      {Role::kRng, MemoryGroup::kParameters},         {Role::kState, MemoryGroup::kOptimizer},
      {Role::kMaster, MemoryGroup::kOptimizer},       {Role::kStepCounter, MemoryGroup::kOptimizer},
      {Role::kGradient, MemoryGroup::kGradients},     {Role::kInput, MemoryGroup::kActivations},
      {Role::kActivation, MemoryGroup::kActivations}, {Role::kOutput, MemoryGroup::kActivations}};
  std::vector<tests::SmallItem> items;
  ir::Schedule schedule;
  ir::Command all = {.temp = {.bytes = Bytes(100)}};
  for (const auto& [role, group] : groups) {
    EXPECT_EQ(memoryGroupOf(role), group) << ir::roleName(role);
    all.out.push_back(ir::ResidencyId(items.size()));
    schedule.residencies.push_back({.storage = ir::StorageId(items.size())});
    items.push_back({.role = role, .units = 1});
  }
  schedule.commands = {all};
  const ir::Graph graph = graphOf(items);
  const std::vector<GroupBytes> bytes = ResidencySpans(graph, schedule, 512).bytesByCommand();
  ASSERT_EQ(bytes.size(), 1U);
  EXPECT_EQ(bytes[0], (GroupBytes{5 * 512, 3 * 512, 512, 3 * 512, 100}));
  EXPECT_EQ(sumOf(bytes[0]), 12 * 512 + 100);
}

TEST(ResidencySpans, GroupsHaveNames) {
  std::vector<std::string> names;
  for (size_t group = 0; group < kMemoryGroupCount; ++group) {
    names.emplace_back(memoryGroupName(static_cast<MemoryGroup>(group)));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"parameters", "optimizer state", "gradients",
                                             "activations", "temporaries"}));
}

}  // namespace
}  // namespace stowage::planner
