// SPDX-License-Identifier: Apache-2.0
//
// The order of launches on one of several ranks: gathers come before their readers, by the time
// that they take and where there is room; updates after what they wait for.
#include "planner/evaluate/launch_order.h"

#include <gtest/gtest.h>

#include "ir/text/parser.h"
#include "planner/evaluate/evaluation.h"
#include "tests/support/or_fail.h"

namespace stowage::planner {
namespace {

using enum ir::GapAction;
using tests::orFail;

constexpr int64_t kOp = 1000;  // nanoseconds of an op of compute

// Two parameters on two ranks: nodes 1 and 3 gather them, node 7 makes a gradient, 8 and 9 its
// mean.
constexpr const char* kStep = R"stow(graph @ranks version=1 ranks=2 {
  input %x : f32[256]
  parameter %v "v" : f32[128] shard of f32[256]
  parameter %w "w" : f32[128] shard of f32[256]
forward "":
  %a : f32[256] = aten.relu.default(%x)
  %vw "whole(v)" : f32[256] = stowage.all_gather.default(%v, 2)
  %b : f32[256] = aten.mul.Tensor(%a, %vw)
  %c : f32[256] = aten.relu.default(%b)
  %ww "whole(w)" : f32[256] = stowage.all_gather.default(%w, 2)
  %d : f32[256] = aten.mul.Tensor(%c, %ww)
  %e : f32[256] = aten.relu.default(%d)
backward "":
  %g gradient : f32[256] = aten.mul.Tensor(%e, %ww)
  %gr gradient : f32[256] = stowage.all_to_all.default(%g, 2)
  %m gradient : f32[128] = stowage.add_parts.default(%gr, 2, true)
  %h gradient : f32[256] = aten.mul.Tensor(%g, %vw)
optimizer "":
  %w = aten.add_.Tensor(inout %w, %m, -1)
backward "":
  %k gradient : f32[256] = aten.relu.default(%h)
  %l gradient : f32[256] = aten.relu.default(%k)
  %lr gradient : f32[256] = stowage.all_to_all.default(%l, 2)
  %n gradient : f32[128] = stowage.add_parts.default(%lr, 2, true)
optimizer "":
  %v = aten.add_.Tensor(inout %v, %n, -1)
}
)stow";

/// The step with ops of kOp each and collectives of `link`.
struct RankStep {
  explicit RankStep(int64_t link)
      : graph(orFail(ir::parseGraph(kStep))),
        target{.profile = "test", .memory = Bytes(1 << 20)},
        problem(orFail(makeProblem(graph, target, costsOf(link)))),
        table(problem) {}

  ir::CostTable costsOf(int64_t link) const {
    ir::CostTable costs{.source = ir::CostSource::kGiven, .device = "test"};
    costs.links.betweenRanks = {.bandwidth = BytesPerSecond(int64_t{1} << 50),
                                .latency = Nanoseconds(link)};
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const bool isOp = graph.nodes()[i].op.starts_with("aten");
      costs.bySignature[ir::nodeSignature(graph, ir::NodeId(i))] = {
          .work = Nanoseconds(isOp ? kOp : 0), .launch = {}, .temporary = {}, .resultOrdinals = {}};
    }
    return costs;
  }

  ir::StorageId find(const std::string& name) const {
    for (size_t i = 0; i < graph.storages().size(); ++i) {
      if (graph.storages()[i].name == name) return ir::StorageId(i);
    }
    return {};
  }

  Actions kept() const { return Actions(table.gaps().size(), kKeep); }

  /// Nodes in order; "g4.1" is the first recompute of node 4.
  std::string order(const Actions& actions, int64_t limit = int64_t{1} << 40) const {
    const Expansion inOrder = orFail(expand(table, actions));
    const Expansion expansion =
        orFail(expand(table, actions, orderAroundCollectives(table, inOrder, limit)));
    std::string text;
    for (const Launch& launch : llvm::ArrayRef(expansion.launches).drop_front()) {
      text += (text.empty() ? "" : " ") + std::to_string(launch.node.raw());
      if (launch.recompute > 0) text += "." + std::to_string(launch.recompute);
    }
    return text;
  }

  const ir::Graph graph;
  const ir::Target target;
  const Problem problem;
  const GapTable table;
};

// By 1.5 times what it takes, at the begin of a node.
TEST(LaunchOrder, AGatherComesAsEarlyAsTheLinkNeeds) {
  EXPECT_EQ(RankStep(1).order(RankStep(1).kept()), "1 0 2 4 3 5 6 7 8 10 9 11 12 13 14 15 16");
  const RankStep step(kOp);
  EXPECT_EQ(step.order(step.kept()), "1 0 4 2 3 5 6 7 8 10 9 11 12 13 14 15 16");
}

// The update, node 11, needs the mean of nodes 8 and 9 and runs when it has come.
TEST(LaunchOrder, AnUpdateWaitsForTheOtherRanksWhileComputeGoesOn) {
  const RankStep step(3 * kOp);
  const std::string order = step.order(step.kept());
  EXPECT_NE(order.find("10 12 13 9 11 14"), std::string::npos) << order;
}

// Neither gather's bytes fit beside what is there already.
TEST(LaunchOrder, AGatherStaysWhereThereIsNoRoomBeforeIt) {
  const RankStep step(kOp);
  const Actions kept = step.kept();
  EXPECT_EQ(step.order(kept, 1024), "0 1 2 3 4 5 6 7 8 10 9 11 12 13 14 15 16");
}

// whole(w) is dropped after node 5 and gathered again for node 7: before node 6, in its time.
TEST(LaunchOrder, WhatIsGatheredAgainComesEarlyToo) {
  const RankStep step(kOp);
  Actions actions = step.kept();
  actions[step.table.gapIndex(step.find("whole(w)"), 1)] = kRecompute;
  EXPECT_EQ(step.order(actions), "1 0 4 2 3 5 4.1 6 7 8 10 9 11 12 13 14 15 16");
}

TEST(LaunchOrder, ACollectiveIsOverWhenTheLinkIsDoneWithIt) {
  const RankStep step(3 * kOp);
  const Expansion expansion = orFail(expand(step.table, step.kept()));
  std::vector<int64_t> starts(expansion.launches.size(), 0);
  for (size_t i = 1; i + 1 < starts.size(); ++i) {
    starts[i + 1] = starts[i] + step.table.nodeTime(expansion.launches[i].node.index());
  }
  const auto ends = findLaunchEnds(step.table, expansion, starts);
  // Launch 2 gathers from 1 us to 4 us, when launch 7 begins, and launch 5 from then on, to 7 us.
  // 512 bytes take a nanosecond of that.
  EXPECT_EQ(ends[1], (ComputePosition{1, kOp}));
  EXPECT_EQ(ends[2], (ComputePosition{7, 1}));
  EXPECT_EQ(ends[5], (ComputePosition{12, 2}));
}

}  // namespace
}  // namespace stowage::planner
