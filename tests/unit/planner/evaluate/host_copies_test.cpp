// SPDX-License-Identifier: Apache-2.0
//
// Which offloads there are, and where a prefetch has its bytes from. They are derived at the end of
// expand.
#include "planner/evaluate/host_copies.h"

#include <gtest/gtest.h>

#include "ir/text/parser.h"
#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using ir::Role;
using enum ir::GapAction;

void expectPrefetch(const Prefetch& prefetch, int32_t source, int32_t release, int32_t shift) {
  EXPECT_EQ(prefetch.source, source);
  EXPECT_EQ(prefetch.release, release);
  EXPECT_EQ(prefetch.sourceShift, shift);
}

// Launch 1 makes `a`, launch 2 reads it. The offload may begin after 1, the prefetch after 2.
TEST(HostCopies, AnOffloadBeginsAfterTheLastWriteAndAPrefetchAfterTheLastUse) {
  const tests::WorkedPlan plan;
  const Expansion expansion = llvm::cantFail(expand(plan.table, plan.actions));
  ASSERT_EQ(expansion.offloads.size(), 1U);
  EXPECT_EQ(expansion.offloads[0].after, 1);
  EXPECT_FALSE(expansion.offloads[0].isOutput);
  expectPrefetch(expansion.prefetches[0], /*source=*/0, /*release=*/2, /*shift=*/0);
  EXPECT_TRUE(expansion.hostAtBoundary[0].needed);
  EXPECT_FALSE(expansion.hostAtBoundary[0].always);
}

// s0 is away in [0,2) and [2,4). The host has it since the first offload, unless node 2 changes it.
TEST(HostCopies, TheHostGetsEachVersionOnce) {
  const auto expansion = [](std::vector<int> updates) {
    const tests::SmallProblem step(
        {.items = {{Role::kActivation}},
         .nodes = {{.op = "test.make.default", .results = {0}},
                   {.op = "test.other.default"},
                   {.op = "test.use.default", .reads = {0}, .updates = std::move(updates)},
                   {.op = "test.other.default"},
                   {.op = "test.read.default", .reads = {0}}}});
    return llvm::cantFail(expand(step.table, {kHost, kHost, kKeep}));
  };
  const Expansion read = expansion({});
  ASSERT_EQ(read.offloads.size(), 1U);
  expectPrefetch(read.prefetches[0], /*source=*/0, /*release=*/1, /*shift=*/0);
  expectPrefetch(read.prefetches[1], /*source=*/0, /*release=*/3, /*shift=*/0);
  const Expansion changed = expansion({0});
  ASSERT_EQ(changed.offloads.size(), 2U);
  EXPECT_EQ(changed.offloads[1].after, 3);
  expectPrefetch(changed.prefetches[1], /*source=*/1, /*release=*/3, /*shift=*/0);
}

// Five launches. s0 is frozen and read by launch 1, s1 is updated by launch 3; both are prefetched
// over the step boundary, to which launch k of the step before is k - 5. s2 is an input: the host
// has new bytes each step, and the device's old ones need not go first.
TEST(HostCopies, WhatTheHostHasIsNotOffloaded) {
  const tests::SmallProblem step(
      {.items = {{Role::kFrozen}, {Role::kParameter}, {Role::kInput}},
       .nodes = {{.op = "test.read.default", .reads = {0, 2}},
                 {.op = "test.other.default"},
                 {.op = "test.update.default", .reads = {1}, .updates = {1}},
                 {.op = "test.other.default"}}});
  const Expansion expansion = llvm::cantFail(expand(step.table, {kHost, kHost, kKeep}));
  ASSERT_EQ(expansion.prefetches.size(), 3U);
  expectPrefetch(expansion.prefetches[0], /*source=*/-1, /*release=*/1 - 5, /*shift=*/0);
  expectPrefetch(expansion.prefetches[1], /*source=*/-1, /*release=*/1 - 5, /*shift=*/0);
  EXPECT_TRUE(expansion.prefetches[1].ofThisStep);
  expectPrefetch(expansion.prefetches[2], /*source=*/0, /*release=*/3 - 5, /*shift=*/-1);
  ASSERT_EQ(expansion.offloads.size(), 1U);
  EXPECT_EQ(expansion.offloads[0].after, 3);
  EXPECT_TRUE(expansion.hostAtBoundary[0].always && expansion.hostAtBoundary[2].always);
  EXPECT_EQ(expansion.hostAtBoundary[1].offload, 0);
}

TEST(HostCopies, AnOutputIsDeliveredOnTheHost) {
  const ir::Graph graph = llvm::cantFail(ir::parseGraph(R"IR(
graph @output version=1 {
forward "":
  %loss "loss" output : f32[16] = aten.rand.default()
}
)IR"));
  const ir::Target target = tests::smallTarget();
  const Problem problem{
      .graph = graph, .target = target, .costs = {.nodes = {{}}}, .lives = ir::computeLives(graph)};
  const Expansion expansion = llvm::cantFail(expand(GapTable(problem), {kKeep}));
  ASSERT_EQ(expansion.offloads.size(), 1U);
  EXPECT_EQ(expansion.offloads[0].after, 1);
  EXPECT_TRUE(expansion.offloads[0].isOutput);
  EXPECT_TRUE(expansion.prefetches.empty());
}

}  // namespace
}  // namespace stowage::planner
