// SPDX-License-Identifier: Apache-2.0
//
// Constants that live on the host: a plan keeps them there, a runner puts them there, and ops read
// them there. State on the host that a step writes is refused.
#include "runtime/executor/host_state.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "ir/text/parser.h"
#include "passes/plan_step.h"
#include "planner/targets/roofline.h"
#include "runtime/runner/graph_step.h"
#include "runtime/runner/runner.h"
#include "tests/support/or_fail.h"

namespace stowage::runtime {
namespace {

using tests::orFail;

constexpr float kScale = 0.75F;

/// Without a GPU the device of this step is the CPU, whose arenas are two as well: what is called
/// host here lies in the host's.
constexpr const char* kScaled = R"IR(
graph @scaled version=1 device="cpu" target="cpu" recipe="" producer="" steps=2 {
  input %x "x" : f32[64]
  parameter %w "w" : f32[64]
  constant %c "_tensor_constant0" host : f32[]
forward "":
  %a : f32[64] = aten.mul.Tensor(%x, %c)
  %b : f32[64] = aten.mul.Tensor(%a, %w)
  %l "loss" output output : f32[] = aten.sum.default(%b, none)
optimizer "":
  aten.add_.Tensor(inout %w, %a, 1)
}
)IR";

ir::Graph parse(const std::string& text) { return orFail(ir::parseGraph(text)); }

passes::PlannedStep plan(const ir::Graph& graph, const ir::Target& target) {
  return orFail(
      passes::planStep(graph, target, planner::rooflineCosts(graph, target),
                       {.budget = Bytes(1 << 20), .allowed = {}, .pins = {}, .pinnedRows = {}}));
}

TEST(HostState, AConstantOnTheHostIsReadThere) {
  const ir::Graph graph = parse(kScaled);
  const ir::Target target = orFail(planner::findTargetProfile("cpu"));
  const passes::PlannedStep planned = plan(graph, target);
  const auto firstBytes = [&](ir::StorageId id) -> ir::Expected<at::Tensor> {
    const bool isConstant = planned.graph.storage(id).role == ir::Role::kConstant;
    const at::Tensor first = isConstant ? at::full({1}, kScale) : at::ones({64});
    return first.view(at::kByte);
  };
  const std::unique_ptr<GraphStep> step = orFail(GraphStep::make(planned.graph, firstBytes));
  const std::unique_ptr<Runner> runner =
      orFail(Runner::create(*step, {planned.graph, planned.schedule, target}));
  at::Tensor weights = at::ones({64});
  for (int i = 1; i < 4; ++i) {
    const at::Tensor input = at::full({64}, 0.1 * i);
    const std::vector<at::Tensor> reports = orFail(runner->step({input}));
    const at::Tensor scaled = input * kScale;
    EXPECT_TRUE(reports.front().equal((scaled * weights).sum())) << "step " << i;
    weights.add_(scaled);
  }
}

TEST(HostState, StateOnTheHostThatTheStepWritesIsRefused) {
  EXPECT_EQ(ir::describe(checkHostState(parse(kScaled))), "");
  std::string text = kScaled;
  const std::string constant = "constant %c \"_tensor_constant0\"";
  text.replace(text.find(constant), constant.size(), "buffer %c \"seen\"");
  text.insert(text.rfind('}'), "  aten.add_.Tensor(inout %c, %l, 1)\n");
  const ir::Graph graph = parse(text);
  ir::Error error = checkHostState(graph);
  ASSERT_TRUE(static_cast<bool>(error));
  const ir::PlanError refused = ir::takePayload(std::move(error));
  EXPECT_EQ(refused.code(), ir::ErrorCode::kUnsupported);
  EXPECT_NE(refused.text().find("writes state that lives on the host"), std::string::npos);
  ASSERT_EQ(refused.notes().size(), 1u);
  EXPECT_NE(refused.notes().front().find("aten.add_.Tensor"), std::string::npos);
  EXPECT_NE(refused.notes().front().find("writes 'seen'"), std::string::npos);
}

}  // namespace
}  // namespace stowage::runtime
