// SPDX-License-Identifier: Apache-2.0
//
// Captured step and planned graph are matched by names, whatever passes dropped in between.
#include "runtime/runner/step_match.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "ir/text/parser.h"

namespace stowage::tests {
namespace {

constexpr const char* kCaptured = R"IR(
graph @g version=1 device="cpu" target="cpu" recipe="" producer="" steps=2 {
  scalar #unused : f64 = 1.0
  scalar #lr : f64 = 2.0
  input %x "x" : f32[8]
  parameter %idle "idle" : f32[8]
  parameter %w "w" : f32[8]
optimizer "":
  aten.add_.Tensor(inout %w, %x, #lr)
}
)IR";

constexpr const char* kPlanned = R"IR(
graph @g version=1 device="cpu" target="cpu" recipe="" producer="" steps=2 {
  scalar #lr : f64 = 2.0
  input %x "x" : f32[8]
  parameter %w "w" : f32[8]
optimizer "":
  %t "made by a pass" : f32[8] = aten.clone.default(%x, none)
  aten.add_.Tensor(inout %w, %t, #lr)
}
)IR";

ir::Graph parse(std::string text, const std::string& from = "", const std::string& to = "") {
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  auto graph = ir::parseGraph(text);
  if (!graph) throw std::runtime_error(ir::describe(graph.takeError()));
  return std::move(*graph);
}

ir::StorageId idOf(const ir::Graph& graph, const std::string& name) {
  for (size_t i = 0; i < graph.storages().size(); ++i) {
    if (graph.storages()[i].name == name) return ir::StorageId(i);
  }
  throw std::runtime_error("no " + name);
}

TEST(StepMatch, FindsWhatPassesKept) {
  const ir::Graph captured = parse(kCaptured);
  const ir::Graph planned = parse(kPlanned);
  auto match = runtime::StepMatch::make(captured, planned);
  ASSERT_TRUE(static_cast<bool>(match)) << ir::describe(match.takeError());
  for (const char* name : {"x", "w"}) {
    EXPECT_EQ(match->plannedOf(idOf(captured, name)), idOf(planned, name)) << name;
    EXPECT_EQ(match->capturedOf(idOf(planned, name)), idOf(captured, name)) << name;
  }
  EXPECT_FALSE(match->plannedOf(idOf(captured, "idle")).isValid());
  EXPECT_FALSE(match->capturedOf(idOf(planned, "made by a pass")).isValid());
  ASSERT_EQ(match->scalars().size(), 1U);
  EXPECT_EQ(captured.scalars()[match->scalars()[0].index()].name, "lr");
}

TEST(StepMatch, NamesEverythingThatTheStepDoesNotHave) {
  const ir::Graph captured = parse(kCaptured);
  std::string other = kPlanned;
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"\"w\"", "\"other.w\""},
                                 {"\"x\"", "\"tokens\""},
                                 {"scalar #lr", "scalar #rate"},
                                 {"%t, #lr", "%t, #rate"}}) {
    other.replace(other.find(from), from.size(), to);
  }
  auto match = runtime::StepMatch::make(captured, parse(other));
  ASSERT_FALSE(static_cast<bool>(match));
  const ir::PlanError error = ir::takePayload(match.takeError());
  EXPECT_EQ(error.code(), ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(error.notes(),
            (std::vector<std::string>{"the captured step has no 'tokens'",
                                      "the captured step has no 'other.w'",
                                      "the captured step has no step scalar 'rate'"}));
}

}  // namespace
}  // namespace stowage::tests
