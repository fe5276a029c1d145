// SPDX-License-Identifier: Apache-2.0
//
// What holds the peak of a list of actions, and what lies on the host: planner/report/explain.h.
#include <gtest/gtest.h>

#include "planner/report/explain.h"
#include "tests/support/or_fail.h"
#include "tests/support/worked_step.h"
#include "tests/unit/planner/example_steps.h"

namespace stowage::planner {
namespace {

using ir::GapAction;
using tests::orFail;
using tests::WorkedStep;

using Holders = std::vector<std::pair<std::string, Bytes>>;
Holders plain(const std::vector<ir::Infeasible::Holder>& holders) {
  Holders plain;
  for (const ir::Infeasible::Holder& holder : holders)
    plain.emplace_back(holder.storage, holder.bytes);
  return plain;
}

const Actions kOffloadA = {GapAction::kKeep, GapAction::kHost, GapAction::kKeep};

// Kept, a lies beside the temporaries of `wide`, which does not use it. Offloaded, 8 units are the
// peak at several nodes. The first is named; it uses a.
TEST(PeakHolders, TheWorkedStepWithAndWithoutItsOffload) {
  const WorkedStep step;
  const GapTable table(step.problem());
  const PeakHolders kept = orFail(findPeakHolders(table, Actions(3, GapAction::kKeep)));
  EXPECT_EQ(kept.node, ir::NodeId(2));
  EXPECT_EQ(kept.bytes, WorkedStep::units(16));
  EXPECT_EQ(kept.beside, WorkedStep::units(8));
  EXPECT_EQ(plain(kept.holders), (Holders{{"s0", WorkedStep::units(8)},
                                          {"temporaries of the node", WorkedStep::units(8)}}));

  const PeakHolders offloaded = orFail(findPeakHolders(table, kOffloadA));
  EXPECT_EQ(offloaded.node, ir::NodeId(0));
  EXPECT_EQ(offloaded.bytes, WorkedStep::units(8));
  EXPECT_EQ(offloaded.beside, Bytes(0));
}

TEST(PeakHolders, OnTheHostIsWhatThePlanSendsThere) {
  const WorkedStep step;
  const GapTable table(step.problem());
  EXPECT_EQ(plain(findHostHolders(table, kOffloadA, WorkedStep::budget())),
            (Holders{{"s0", WorkedStep::units(8)}}));
  EXPECT_TRUE(findHostHolders(table, Actions(3, GapAction::kKeep), WorkedStep::units(16)).empty());
}

// Weights of 1 to 12 units, all read by one node, and a region of 20 units: 98 units in all. The
// ten largest are listed: the region and the weights of 12 to 4 units.
TEST(PeakHolders, TheTenLargestAreListedAndAllAreCounted) {
  tests::SmallStep small = {.items = {}, .nodes = {{.op = "test.read.default"}}};
  for (int i = 0; i < 12; ++i) {
    small.items.push_back({ir::Role::kFrozen, i + 1});
    small.nodes[0].reads.push_back(i);
  }
  const ir::Graph graph = tests::toGraph(small);
  ir::Target target = tests::smallTarget();
  target.reserved = {{.what = "lib", .bytes = WorkedStep::units(20)}};
  const Problem problem = tests::toProblem(small, graph, target);
  const GapTable table(problem);
  const PeakHolders peak =
      orFail(findPeakHolders(table, Actions(table.gaps().size(), GapAction::kKeep)));
  EXPECT_EQ(peak.bytes, WorkedStep::units(20 + 12 * 13 / 2));
  ASSERT_EQ(peak.holders.size(), 10U);
  EXPECT_EQ(peak.holders.front().storage, "reserved for libraries");
  EXPECT_EQ(peak.holders[1].storage, "s11");
  EXPECT_EQ(peak.holders.back().bytes, WorkedStep::units(4));
}

}  // namespace
}  // namespace stowage::planner
