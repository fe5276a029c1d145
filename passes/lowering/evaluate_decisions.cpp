// SPDX-License-Identifier: Apache-2.0
#include "passes/lowering/evaluate_decisions.h"

#include <utility>

#include "passes/manage/pass_options.h"
#include "planner/evaluate/evaluate.h"

namespace stowage::passes {

namespace {

constexpr int64_t kNodeNanoseconds = 1000;
constexpr BytesPerSecond kBytePerNanosecond{1'000'000'000};

Bytes touchedBytes(const ir::Graph& graph, ir::NodeId node) {
  Bytes bytes;
  for (const ir::Access& access : graph.accesses(node)) {
    bytes += graph.storage(access.storage).bytes;
  }
  return bytes;
}

}  // namespace

ir::CostTable makeCountedCosts(const ir::Graph& graph) {
  const ir::LinkRate rate{.bandwidth = kBytePerNanosecond, .latency = Nanoseconds()};
  ir::CostTable table;
  table.device = "counted";
  table.links = {.deviceToHost = rate, .hostToDevice = rate, .diskRead = rate, .diskWrite = rate};
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ir::NodeId node(i);
    ir::OpCost cost;
    cost.work = Nanoseconds(kNodeNanoseconds + touchedBytes(graph, node).value());
    table.bySignature.emplace(ir::nodeSignature(graph, node), std::move(cost));
  }
  return table;
}

ir::Expected<std::unique_ptr<Pass>> EvaluateDecisions::parse(llvm::StringRef text) {
  EvaluateDecisionsOptions options;
  OptionReader reader("evaluate", text);
  options.prefetchLimit = reader.readSize("prefetch-limit", options.prefetchLimit);
  if (ir::Error error = reader.finish()) return error;
  return std::make_unique<EvaluateDecisions>(options);
}

std::string EvaluateDecisions::options() const {
  if (options_.prefetchLimit.value() == 0) return "";
  return "prefetch-limit=" + printSize(options_.prefetchLimit);
}

ir::Expected<PassReport> EvaluateDecisions::run(PassState& state) const {
  ir::Expected<planner::Problem> problem =
      planner::makeProblem(state.graph, state.target, makeCountedCosts(state.graph), {.disk = true},
                           {.disk = Bytes(INT64_MAX)});
  if (!problem) return problem.takeError();
  const Bytes limit =
      options_.prefetchLimit.value() > 0 ? options_.prefetchLimit : Bytes(INT64_MAX / 4);
  ir::Expected<planner::Timetable> timetable = planner::evaluate(*problem, state.decisions, limit);
  if (!timetable) return timetable.takeError();
  PassReport report{.changed = false,
                    .counters = {{"actions", static_cast<int64_t>(timetable->actions.size())},
                                 {"device_bytes", timetable->devicePeak.value()},
                                 {"step_ns", timetable->stepTime.value()}}};
  state.timetable = std::move(*timetable);
  return report;
}

}  // namespace stowage::passes
