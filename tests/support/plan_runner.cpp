// SPDX-License-Identifier: Apache-2.0
//
// plan_runner plan.json graph.stow: runs some steps of a plan and compares every byte with the op
// by op replay. Links what a plan needs to run and nothing that makes plans: the test beside it
// looks at the symbols.
#include <ATen/Context.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include <string>

#include "ir/text/parser.h"
#include "ir/verify/verify.h"
#include "planner/files/plan_json.h"
#include "runtime/torch/deterministic_mode.h"
#include "tests/support/cpu_training.h"

namespace stowage::tests {
namespace {

int say(const std::string& text, int code) {
  llvm::outs() << text << '\n';
  return code;
}

ir::Expected<std::string> readText(const char* path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) return ir::makeError(ir::ErrorCode::kIo, std::string(path) + ": cannot be read");
  return (*buffer)->getBuffer().str();
}

/// "" when the plan is proved, else its violations.
std::string prove(const ir::Graph& graph, const planner::PlanFile& plan) {
  std::string text;
  for (const ir::Violation& violation : ir::verify({.graph = graph,
                                        .schedule = plan.schedule,
                                        .target = plan.target,
                                        .costs = nullptr,
                                        .budget = plan.budget})) {
    text += "V" + std::to_string(violation.rule) + ": " + violation.message + "\n";
  }
  return text;
}

ir::Expected<std::string> runPlan(const ir::Graph& graph, const planner::PlanFile& plan) {
  runtime::setDeterministicMode(plan.target.deterministic);
  runtime::CpuDeviceOptions options;
  options.deviceBytes = plan.schedule.arenaBytes(ir::Space::kDevice);
  options.hostBytes = plan.schedule.arenaBytes(ir::Space::kHost);
  options.intraOpThreads = plan.target.intraOpThreads;
  auto device = runtime::CpuDevice::open(options);
  if (!device) return device.takeError();
  return compareWithReplay(**device, {graph, plan.schedule, plan.target, nullptr, nullptr});
}

int runFiles(const char* planPath, const char* graphPath) {
  auto planText = readText(planPath);
  if (!planText) return say(ir::describe(planText.takeError()), 3);
  auto plan = planner::readPlan(*planText, planPath);
  if (!plan) return say(ir::describe(plan.takeError()), 3);
  auto graphText = readText(graphPath);
  if (!graphText) return say(ir::describe(graphText.takeError()), 3);
  auto graph = ir::parseGraph(*graphText, graphPath);
  if (!graph) return say(ir::describe(graph.takeError()), 3);
  if (ir::Error error = planner::checkPlanGraph(*plan, *graph)) {
    return say(ir::describe(std::move(error)), 3);
  }
  if (std::string violations = prove(*graph, *plan); !violations.empty()) return say(violations, 1);
  auto difference = runPlan(*graph, *plan);
  if (!difference) return say(ir::describe(difference.takeError()), 4);
  return difference->empty() ? say("equal", 0) : say(*difference, 1);
}

}  // namespace
}  // namespace stowage::tests

int main(int argc, char** argv) {
  return argc == 3 ? stowage::tests::runFiles(argv[1], argv[2]) : 2;
}
