// SPDX-License-Identifier: Apache-2.0
//
// A plan file is all that a run needs: another program, which has no code that makes plans, reads
// it, proves it and trains by it; and refuses one that was tampered with.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <llvm/Support/raw_ostream.h>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "passes/plan_step.h"
#include "planner/files/plan_json.h"
#include "planner/targets/roofline.h"
#include "tests/support/or_fail.h"
#include "tests/support/scratch_folder.h"

namespace stowage::tests {
namespace {

constexpr const char* kMlp = R"IR(
graph @mlp version=1 device="cpu" target="cpu" recipe="" producer="" steps=2 {
  scalar #lr : f64 = -0.125
  input %x "tokens" : f32[64,64]
  parameter %w1 "a.weight" : f32[64,64]
  parameter %w2 "b.weight" : f32[64,64]
forward "a":
  %h : f32[64,64] = aten.mm.default(%x, %w1)
  %r : f32[64,64] = aten.relu.default(%h)
forward "b":
  %y : f32[64,64] = aten.mm.default(%r, %w2)
  %l "loss" output output : f32[] = aten.sum.default(%y, none)
backward "b":
  view %rt of %r : f32[64,64] strides=[1,64]
  %g2 "grad(b.weight)" gradient : f32[64,64] = aten.mm.default(%rt, %y)
backward "a":
  view %xt of %x : f32[64,64] strides=[1,64]
  %g1 "grad(a.weight)" gradient : f32[64,64] = aten.mm.default(%xt, %h)
optimizer "":
  aten.add_.Tensor(inout %w2, %g2, #lr)
  aten.add_.Tensor(inout %w1, %g1, #lr)
}
)IR";

struct Outcome {
  int code = 0;
  std::string text;
};

Outcome runProgram(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::array<char, 4096> part{};
  while (const size_t n = fread(part.data(), 1, part.size(), pipe)) {
    outcome.text.append(part.data(), n);
  }
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

class PlanAlone : public testing::Test {
 protected:
  PlanAlone() {
    const ir::Graph graph = orFail(ir::parseGraph(kMlp));
    ir::Target target = orFail(planner::findTargetProfile("cpu"));
    const ir::CostTable costs = planner::rooflineCosts(graph, target);
    const auto within = [&](Bytes budget) {
      return orFail(passes::planStep(
          graph, target, costs, {.budget = budget, .allowed = {}, .pins = {}, .pinnedRows = {}}));
    };
    const int64_t whole = within(Bytes(int64_t{1} << 26)).result.keepAllPeak.value();
    const Bytes budget(whole * 3 / 4 / 512 * 512);
    const passes::PlannedStep planned = within(budget);
    write("graph.stow", ir::toText(planned.graph));
    std::string text;
    llvm::raw_string_ostream os(text);
    EXPECT_EQ(ir::describe(planner::writePlan(
                  planner::makePlanFile(planned.graph, target, planned.schedule, budget), os)),
              "");
    plan_ = os.str();
  }

  void write(const std::string& name, const std::string& text) const {
    writeText(folder_.at(name), text);
  }
  Outcome runPlan(const std::string& text) const {
    write("plan.json", text);
    return runProgram(std::string(STOWAGE_PLAN_RUNNER) + " " + folder_.at("plan.json") + " " +
                      folder_.at("graph.stow"));
  }

  std::string plan_;

 private:
  ScratchFolder folder_{"stowage_alone"};
};

TEST_F(PlanAlone, TrainsWithoutThePlanner) {
  const Outcome outcome = runPlan(plan_);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.text, "equal\n");
  EXPECT_NE(plan_.find("\"op\":\"copy\""), std::string::npos) << "nothing is moved: a dull plan";
}

TEST_F(PlanAlone, RefusesAnEditedScheduleByRule) {
  // The first copy of the step is dropped from what a later command waits for.
  std::string text = plan_;
  const size_t wait = text.find("\"wait\":[");
  ASSERT_NE(wait, std::string::npos);
  text.erase(wait + 8, text.find(']', wait) - wait - 8);
  const Outcome outcome = runPlan(text);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.text.rfind("V1", 0), 0U) << outcome.text;  // V10 to V13
}

TEST_F(PlanAlone, RefusesAnotherGraph) {
  std::string text = kMlp;
  text.replace(text.find("aten.relu."), 10, "aten.silu.");
  write("graph.stow", text);
  const Outcome outcome = runPlan(plan_);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.text.find("fingerprint"), std::string::npos) << outcome.text;
}

TEST_F(PlanAlone, TheProgramHasNoCodeThatPlans) {
  const Outcome symbols = runProgram(std::string(STOWAGE_NM) + " -C " + STOWAGE_PLAN_RUNNER);
  ASSERT_EQ(symbols.code, 0) << symbols.text;
  EXPECT_NE(symbols.text.find("stowage::planner::readPlan("), std::string::npos);
  EXPECT_NE(symbols.text.find("stowage::ir::verify("), std::string::npos);
  for (const char* absent : {"stowage::passes::", "stowage::planner::plan(",
                             "stowage::planner::evaluate(", "stowage::planner::makeProblem("}) {
    EXPECT_EQ(symbols.text.find(absent), std::string::npos) << absent;
  }
  // The same look at this program, which plans, finds them.
  const Outcome own =
      runProgram(std::string(STOWAGE_NM) + " -C /proc/" + std::to_string(getpid()) + "/exe");
  EXPECT_NE(own.text.find("stowage::planner::plan("), std::string::npos);
  EXPECT_NE(own.text.find("stowage::planner::makeProblem("), std::string::npos);
}

}  // namespace
}  // namespace stowage::tests
