// SPDX-License-Identifier: Apache-2.0
//
// Storages at a peak as a person counts them: alike ones together, with what they are for.
#include "planner/report/holder_groups.h"

#include <gtest/gtest.h>

#include "ir/text/parser.h"
#include "tests/support/or_fail.h"

namespace stowage::planner {
namespace {

constexpr const char* kStep = R"ir(
graph @groups version=1 device="cpu" target="cpu" recipe="" producer="" steps=0 {
  scalar #lr : f64 = -0.1
  input %x "x" : f32[32,16]
  parameter %w "w" : f32[32,16]
  state %m "m(w)" : f32[32,16]
forward "head":
  %a "head/a" : f32[32,16] = aten.mul.Tensor(%x, %w)
  %b "head/b" : f32[32,16] = aten.relu.default(%a)
  %s "head/s" : f32[32] = aten.sum.dim_IntList(%b, [1], false, none)
backward "head":
  %d "head/d" : f32[32,16] = aten.threshold_backward.default(%b, %b, 0)
  %g "grad(w)" gradient : f32[32,16] = aten.mul.Tensor(%d, %x)
optimizer "":
  aten.add_.Tensor(inout %m, %g, 1)
  aten.add_.Tensor(inout %w, %m, #lr)
}
)ir";

std::vector<ir::StorageId> allOf(const ir::Graph& graph) {
  std::vector<ir::StorageId> ids;
  for (size_t i = 0; i < graph.storages().size(); ++i) ids.emplace_back(i);
  return ids;
}

TEST(HolderGroups, AlikeStoragesAreOneGroupThatSaysWhatTheyAreFor) {
  const ir::Graph graph = tests::orFail(ir::parseGraph(kStep));
  const std::vector<ir::Infeasible::Group> groups =
      groupHolders(graph, allOf(graph), {{"temporaries of the node", Bytes(4096)}}, 512);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].bytes, Bytes(7 * 2048));
  EXPECT_EQ(ir::describeGroup(groups[0]),
            "7 of f32 [32,16], 2.00 KiB each: 2 activations, 2 gradients, 1 input, 1 optimizer "
            "state, 1 parameter");
  EXPECT_EQ(groups[0].storages.size(), 3U) << "some names are enough";
  EXPECT_EQ(ir::describeGroup(groups[1]), "temporaries of the node");
  EXPECT_EQ(groups[2].bytes, Bytes(512)) << "rounded up, as in the arena";
  EXPECT_EQ(ir::describeGroup(groups[2]), "head/s, f32 [32], activation");
}

}  // namespace
}  // namespace stowage::planner
