// SPDX-License-Identifier: Apache-2.0
//
// From an action per gap to launches, live ranges and copies.
#include "planner/evaluate/expand.h"

#include <gtest/gtest.h>

#include "tests/unit/planner/small_problem.h"

namespace stowage::planner {
namespace {

using ir::Role;
using enum ir::GapAction;
using Numbers = std::vector<int32_t>;

/// The node of each launch, and after a point how often it is recomputed: "0 1.1" is node 0, then
/// the first recompute of node 1.
std::string launches(const Expansion& expansion) {
  std::string text;
  for (const Launch& launch : llvm::ArrayRef(expansion.launches).drop_front()) {
    text += (text.empty() ? "" : " ") + std::to_string(launch.node.raw());
    if (launch.recompute > 0) text += "." + std::to_string(launch.recompute);
  }
  return text;
}
Numbers liveRange(const Expansion& expansion, size_t index) {
  return {expansion.liveRanges[index].begin, expansion.liveRanges[index].end};
}

// Node k is launch k + 1. `a` is made by launch 1 and read by 2; it comes back for launch 5.
TEST(Expand, AnOffloadSplitsALiveRangeInTwo) {
  const tests::WorkedPlan plan;
  const Expansion expansion = llvm::cantFail(expand(plan.table, plan.actions));
  EXPECT_EQ(launches(expansion), "0 1 2 3 4");
  EXPECT_FALSE(expansion.launches[0].node.isValid()) << "the step boundary";
  ASSERT_EQ(expansion.liveRanges.size(), 2U);
  EXPECT_EQ(liveRange(expansion, 0), (Numbers{1, 2}));
  EXPECT_EQ(liveRange(expansion, 1), (Numbers{5, 5}));
  ASSERT_EQ(expansion.offloads.size(), 1U);
  EXPECT_EQ(expansion.offloads[0].liveRange, 0);
  ASSERT_EQ(expansion.prefetches.size(), 1U);
  EXPECT_EQ(expansion.prefetches[0].liveRange, 1);
  EXPECT_EQ(expansion.prefetches[0].deadline, 5);
  EXPECT_EQ(expansion.endingPrefetch, (Numbers{-1, 0, -1})) << "it ends the gap [1,4)";

  const Expansion kept = llvm::cantFail(expand(plan.table, {kKeep, kKeep, kKeep}));
  ASSERT_EQ(kept.liveRanges.size(), 1U);
  EXPECT_EQ(liveRange(kept, 0), (Numbers{1, 5}));
  EXPECT_TRUE(kept.offloads.empty() && kept.prefetches.empty());
}

// s1 is a matrix product of s0 that is dropped until node 3 reads it. The recompute runs right
// before, and needs s0 earlier than node 4 does.
TEST(Expand, ARecomputeRunsBeforeItsUseAndEndsTheGapOfItsInput) {
  const tests::SmallProblem step({.items = {{Role::kActivation}, {Role::kActivation}},
                                  .nodes = {{.op = "test.make.default", .results = {0}},
                                            {.op = "aten.mm.default", .reads = {0}, .results = {1}},
                                            {.op = "test.other.default"},
                                            {.op = "test.read.default", .reads = {1}},
                                            {.op = "test.read.default", .reads = {0}}}});
  const Expansion expansion =
      llvm::cantFail(expand(step.table, {/*s0*/ kKeep, kHost, kKeep, /*s1*/ kRecompute, kKeep}));
  EXPECT_EQ(launches(expansion), "0 1 2 1.1 3 4");
  ASSERT_EQ(expansion.prefetches.size(), 1U);
  EXPECT_EQ(expansion.prefetches[0].deadline, 4) << "the recompute";
  const Launch& recompute = expansion.launches[4];
  EXPECT_EQ(liveRange(expansion, static_cast<size_t>(recompute.in[0])), (Numbers{4, 6}));
  EXPECT_EQ(liveRange(expansion, static_cast<size_t>(recompute.out[0])), (Numbers{4, 5}));
}

// A parameter is offloaded between its two reads and kept over the step boundary. One live range
// goes from the second read, launch 3, to the first read of the next step: launch 1 + 5.
TEST(Expand, WhatIsKeptOverTheStepBoundaryIsOneLiveRange) {
  const tests::SmallProblem step({.items = {{Role::kFrozen}},
                                  .nodes = {{.op = "test.read.default", .reads = {0}},
                                            {.op = "test.other.default"},
                                            {.op = "test.read.default", .reads = {0}},
                                            {.op = "test.other.default"}}});
  const Expansion expansion = llvm::cantFail(expand(step.table, {kHost, kKeep}));
  const int32_t range = expansion.launches[1].in[0];
  EXPECT_EQ(expansion.launches[3].in[0], range);
  EXPECT_EQ(liveRange(expansion, static_cast<size_t>(range)), (Numbers{3, 6}));
  const Expansion kept = llvm::cantFail(expand(step.table, {kKeep, kKeep}));
  EXPECT_TRUE(kept.liveRanges[0].always);
}

TEST(Expand, RefusesAnActionThatItsGapDoesNotAllow) {
  const tests::WorkedPlan plan;
  ir::Expected<Expansion> refused = expand(plan.table, {kKeep, kRecompute, kKeep});
  ASSERT_FALSE(static_cast<bool>(refused));
  const ir::PlanError error = ir::takePayload(refused.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.text(),
            "storage 's0': found action 'recompute' for the gap [1, 4), which does not allow it");
}

}  // namespace
}  // namespace stowage::planner
