// SPDX-License-Identifier: Apache-2.0
//
// The gaps of a step, and what may be done in each.
#include "planner/problem/gaps.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using ir::Role;
using ir::StorageId;
using tests::SmallProblem;

void expectGap(const Gap& gap, int64_t begin, int64_t end, bool live, bool mayHost) {
  EXPECT_EQ(gap.begin, begin);
  EXPECT_EQ(gap.end, end);
  EXPECT_EQ(gap.live, live) << "[" << begin << ", " << end << ")";
  EXPECT_EQ(gap.mayHost, mayHost) << "[" << begin << ", " << end << ")";
}

// `a` is accessed at 0, 1 and 4 of five nodes.
TEST(Gaps, OnlyAGapWithNodesInsideMayBeOffloaded) {
  const tests::WorkedStep step;
  const GapTable table(step.problem());
  ASSERT_EQ(table.gapCount(step.a()), 3U);
  expectGap(table.gaps()[0], 0, 1, /*live=*/true, /*mayHost=*/false);
  expectGap(table.gaps()[1], 1, 4, /*live=*/true, /*mayHost=*/true);
  expectGap(table.gaps()[2], 4, 5, /*live=*/false, /*mayHost=*/false);
  for (const Gap& gap : table.gaps()) EXPECT_FALSE(gap.mayRecompute) << "make is no known op";
  EXPECT_EQ(table.temporary(2), tests::units(8));
}

// A parameter stays over the step boundary, so its last gap ends at its first access, three nodes
// later. A gradient that is written whole holds nothing before that write.
TEST(Gaps, ALastGapCrossesTheStepBoundaryUnlessItsBytesAreWrittenAnew) {
  const SmallProblem step(
      {.items = {{Role::kFrozen}, {Role::kGradient}, {Role::kFrozen}},
       .nodes = {{.op = "test.other.default"},
                 {.op = "test.write.default", .reads = {0}, .updates = {1}, .whole = true},
                 {.op = "test.read.default", .reads = {1}}}});
  const GapTable& table = step.table;
  ASSERT_EQ(table.gaps().size(), 3U) << "nobody accesses the second parameter";
  expectGap(table.gaps()[0], 1, 4, /*live=*/true, /*mayHost=*/true);
  expectGap(table.gaps()[1], 1, 2, /*live=*/true, /*mayHost=*/false);
  expectGap(table.gaps()[2], 2, 4, /*live=*/false, /*mayHost=*/false);
  EXPECT_TRUE(table.isHostOnly(StorageId(2)));
}

// s0 is made by a matrix product and changed in place by a relu: both are repeated.
TEST(Gaps, ARecomputeRepeatsEveryWriterSinceTheLastWholeWrite) {
  const auto step = [](const char* op, bool deterministic) {
    ir::Target target = tests::smallTarget();
    target.deterministic = deterministic;
    return std::make_unique<SmallProblem>(
        tests::SmallStep{
            .items = {{Role::kActivation}},
            .nodes = {{.op = op, .time = 3, .results = {0}},
                      {.op = "aten.relu_.default", .time = 2, .reads = {0}, .updates = {0}},
                      {.op = "test.other.default"},
                      {.op = "test.read.default", .reads = {0}}}},
        Allowed(), target);
  };
  const auto mayRecompute = [&](const char* op, bool deterministic) {
    const auto made = step(op, deterministic);
    return made->table.gaps()[1].mayRecompute;
  };
  const auto product = step("aten.mm.default", true);
  EXPECT_EQ(product->table.chainBegin(StorageId(0), 1), 0);
  EXPECT_EQ(product->table.chainTime(StorageId(0), 1), tests::us(5));
  EXPECT_TRUE(mayRecompute("aten.mm.default", true));
  EXPECT_FALSE(mayRecompute("test.make.default", true)) << "no known op";
  // The backends add in a fixed order only if deterministic algorithms are on.
  EXPECT_TRUE(mayRecompute("aten.index_add.default", true));
  EXPECT_FALSE(mayRecompute("aten.index_add.default", false));
}

// The result has 8 units. An input that is dead by then stays if it has at most a quarter of that.
TEST(Gaps, ASmallDeadInputIsKeptForARecompute) {
  const SmallProblem step(
      {.items = {{Role::kActivation, 2}, {Role::kActivation, 3}, {Role::kActivation, 8}},
       .nodes = {{.op = "aten.mm.default", .results = {0}},
                 {.op = "aten.mm.default", .results = {1}},
                 {.op = "aten.mm.default", .reads = {0, 1}, .results = {2}}}});
  const GapTable& table = step.table;
  EXPECT_FALSE(table.recomputesDeadInput(StorageId(0), 1, StorageId(2)));
  EXPECT_TRUE(table.recomputesDeadInput(StorageId(1), 1, StorageId(2)));
}

}  // namespace
}  // namespace stowage::planner
