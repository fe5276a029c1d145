// SPDX-License-Identifier: Apache-2.0
//
// A step of which only the graph is there: how what is given to it has to be laid out.
#include "runtime/runner/graph_step.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "ir/text/parser.h"
#include "runtime/torch/torch_types.h"
#include "tests/support/or_fail.h"

namespace stowage::runtime {
namespace {

using tests::orFail;

/// A step that reads an input and a parameter, and updates a master in another layout and type.
ir::Graph stepWithInput(const std::string& input) {
  return orFail(ir::parseGraph("graph @g version=1 device=\"cpu\" {\n  input %x : " + input + R"IR(
  parameter %w : bf16[2,3] strides=[1,2]
  master %m "master(w)" : f32[2,3]
forward "":
  view %t of %x : f32[6]
  %y : f32[2,3] = aten.mul.Tensor(%w, %m)
  %l "loss" output : f32[] = aten.sum.default(%t, none)
optimizer "":
  %m = aten.add_.Tensor(inout %m, %y, 1)
  %w = aten.copy_.default(out %w, %m, false)
}
)IR"));
}

ir::Expected<at::Tensor> noValue(ir::StorageId /*storage*/) {
  return ir::makeError(ir::ErrorCode::kInternal, "not asked for");
}

TEST(GraphStep, TakesInputsInTheLayoutOfTheGraph) {
  const ir::Graph graph = stepWithInput("f32[3,2] strides=[1,3]");
  const std::unique_ptr<GraphStep> step = orFail(GraphStep::make(graph, noValue));
  EXPECT_FALSE(step->countsSteps()) << "its numbers are inputs or stay";
  ASSERT_EQ(step->inputs().size(), 1u);
  const ir::TensorType& type = graph.value(step->inputs().front()).type;
  EXPECT_EQ(ir::listText(type.strides), "[1,3]") << "a view of the same size is another tensor";
  const at::Tensor values = at::arange(6).to(at::kFloat).view({3, 2});
  const at::Tensor laidOut = layOutAs(type, values);
  EXPECT_TRUE(laidOut.equal(values));
  const auto* first = laidOut.const_data_ptr<float>();
  EXPECT_EQ(std::vector<float>(first, first + 6), (std::vector<float>{0, 2, 4, 1, 3, 5}));
  EXPECT_TRUE(layOutAs(type, laidOut).is_same(laidOut));
}

TEST(GraphStep, RefusesInputsWithGaps) {
  const ir::Graph graph = stepWithInput("f32[3,2] strides=[3,1]");
  ir::Expected<std::unique_ptr<GraphStep>> step = GraphStep::make(graph, noValue);
  ASSERT_FALSE(step);
  const std::string text = ir::describe(step.takeError());
  EXPECT_NE(text.find("input 'x' has gaps between its elements or shares some"), std::string::npos)
      << text;
}

TEST(GraphStep, MastersBeginAsTheirParametersInWhateverLayout) {
  const ir::Graph graph = stepWithInput("f32[3,2]");
  const std::unique_ptr<GraphStep> step = orFail(GraphStep::make(graph, noValue));
  const at::Tensor parameter = at::arange(6).to(at::kBFloat16);  // in order of its bytes
  const auto named = [&](llvm::StringRef name) {
    size_t i = 0;
    while (graph.storages()[i].name != name) ++i;
    return ir::StorageId(i);
  };
  const at::Tensor bytes =
      orFail(step->makeState(named("master(w)"), [&](ir::StorageId) -> ir::Expected<at::Tensor> {
        return parameter.view(at::kByte);
      }));
  const at::Tensor master = bytes.view(at::kFloat);
  const auto* first = master.const_data_ptr<float>();
  EXPECT_EQ(std::vector<float>(first, first + 6), (std::vector<float>{0, 2, 4, 1, 3, 5}));
}

}  // namespace
}  // namespace stowage::runtime
