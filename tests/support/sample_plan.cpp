// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sample_plan.h"

#include <gtest/gtest.h>
#include <llvm/Support/raw_ostream.h>

#include <utility>

#include "ir/schedule/fingerprint.h"
#include "ir/text/parser.h"
#include "planner/files/plan_json.h"

namespace stowage::tests {

namespace {

constexpr const char* kGraph =
    "graph @sample version=1 steps=4 {\n"
    "  input %x : f32[4]\n"
    "  parameter %w : f32[4]\n"
    "  %h \"a \\\"quoted\\\" name\" : f32[4] = aten.mul.Tensor(%x, %w)\n"
    "  %g : f32[4] = aten.mul.Tensor(%h, %w)\n"
    "  %w = aten.add_.Tensor(inout %w, %g, 1)\n"
    "}\n";

ir::ResidencyId r(int index) { return ir::ResidencyId(index); }
ir::CommandId c(int index) { return ir::CommandId(index); }

ir::Command makeCopy(ir::Stream stream, int from, int to) {
  ir::Command copy;
  copy.kind = ir::CommandKind::kCopy;
  copy.stream = stream;
  copy.from = r(from);
  copy.to = r(to);
  return copy;
}

ir::Command makeRun(int node) {
  ir::Command run;
  run.node = ir::NodeId(node);
  return run;
}

std::vector<ir::Command> makeCommands() {
  std::vector<ir::Command> commands = {
      makeCopy(ir::Stream::kHostToDevice, 0, 1), makeRun(0), makeRun(0), makeRun(1), makeRun(2),
      makeCopy(ir::Stream::kDeviceToHost, 2, 4)};
  commands[0].prev = {c(3), c(5)};
  commands[1].in = {r(1), r(2)};
  commands[1].out = {r(3)};
  commands[1].wait = {c(0)};
  commands[1].rngSlot = 0;
  commands[1].temp = {.offset = 2048, .bytes = Bytes(100)};
  commands[2].recompute = 1;
  commands[2].in = {r(1), r(2)};
  commands[2].out = {r(3)};
  commands[2].rngSlot = 0;
  commands[3].in = {r(3), r(2)};
  commands[3].out = {r(5)};
  commands[3].takes = r(3);
  commands[4].stream = ir::Stream::kHostCompute;
  commands[4].in = {r(2), r(5)};
  commands[4].out = {r(2)};
  commands[5].wait = {c(2), c(4)};
  return commands;
}

ir::Schedule makeSchedule(const ir::Graph& graph, const ir::Target& target) {
  ir::Schedule schedule;
  schedule.level = ir::Level::kSynced;
  schedule.graphFingerprint = ir::fingerprint(graph);
  schedule.targetFingerprint = ir::fingerprint(target);
  schedule.opTableVersion = 3;
  schedule.arenas = {{ir::Space::kDevice, Bytes(4096)},
                     {ir::Space::kHost, Bytes(1024)},
                     {ir::Space::kDisk, Bytes(8192)}};
  schedule.reserved = {{.what = "cublas", .stream = 0, .offset = Bytes(512), .bytes = Bytes(64)}};
  schedule.graphMode = ir::GraphMode::kNoUpdate;
  schedule.decisions = {{ir::StorageId(1), 2, 3, ir::GapAction::kHost, true, "pinned"},
                        {ir::StorageId(2), 0, 1, ir::GapAction::kRecompute, false, "cheap"},
                        {ir::StorageId(2), 1, 2, ir::GapAction::kDisk, false, ""}};
  schedule.residencies = {
      {ir::StorageId(0), ir::Space::kHost, 0},    {ir::StorageId(0), ir::Space::kDevice, 1024},
      {ir::StorageId(1), ir::Space::kDevice, 0},  {ir::StorageId(2), ir::Space::kDevice, 1536},
      {ir::StorageId(1), ir::Space::kHost, 512},  {ir::StorageId(3), ir::Space::kDevice, 1536},
      {ir::StorageId(2), ir::Space::kDisk, 4096},
  };
  schedule.boundary = {{ir::StorageId(0), {r(0)}, false}, {ir::StorageId(1), {r(2)}, true}};
  schedule.commands = makeCommands();
  schedule.predicted = {.peakBytes = Bytes(2148),
                        .hostPeakBytes = Bytes(1024),
                        .stepTime = Nanoseconds(9'000'000'000'000),
                        .bound = Nanoseconds(7),
                        .computeTime = Nanoseconds(6),
                        .bytesOut = Bytes(512),
                        .bytesIn = Bytes(511)};
  return schedule;
}

}  // namespace

ir::Graph makeSampleGraph() {
  ir::Expected<ir::Graph> graph = ir::parseGraph(kGraph);
  if (graph) return std::move(*graph);
  ADD_FAILURE() << ir::describe(graph.takeError());
  return {};
}

ir::Target makeSampleTarget() {
  ir::Target target;
  target.profile = "h200";
  target.device = ir::DeviceKind::kCuda;
  target.intraOpThreads = 2;
  target.libraries = {{"cublas", "13.0"}, {"cudnn", "9.19"}};
  target.reserved = {{.what = "cublas", .stream = 0, .offset = Bytes(), .bytes = Bytes(64)}};
  target.memory = Bytes(int64_t{141} << 30);
  target.outside = Bytes(int64_t{750} << 20);
  target.flopsPerSecond = {{ir::DType::kF32, 67'000'000'000'000},
                           {ir::DType::kBF16, 989'000'000'000'000}};
  target.memoryBandwidth = BytesPerSecond(4'800'000'000'000);
  target.kernelOverhead = Nanoseconds(2000);
  target.links.deviceToHost = {.bandwidth = BytesPerSecond(55'000'000'000),
                               .latency = Nanoseconds(10'000)};
  target.links.hostToDevice = {.bandwidth = BytesPerSecond(54'000'000'000),
                               .latency = Nanoseconds(8000)};
  target.links.bothPermille = 900;
  target.computeCapability = 90;
  target.cudnnVersion = 91900;
  return target;
}

planner::PlanFile makeSamplePlan() {
  const ir::Graph graph = makeSampleGraph();
  const ir::Target target = makeSampleTarget();
  planner::PlanFile plan =
      planner::makePlanFile(graph, target, makeSchedule(graph, target), Bytes(4096));
  plan.stowageVersion = "0.1.0";
  plan.torchVersion = "2.11.0";
  plan.graph.file = "step.stow";
  plan.graph.text = "graph @sample version=1 {\n}\n";
  plan.costs = {.fingerprint = "xxh3:00000000000000ff",
                .source = ir::CostSource::kRoofline,
                .file = "costs.json"};
  plan.boundScope = "program,hoisted";
  plan.prefetchLimit = Bytes(3584);
  plan.stalls = {.deviceToHost = Nanoseconds(1),
                 .hostToDevice = Nanoseconds(2),
                 .disk = Nanoseconds(3),
                 .ranks = Nanoseconds(4)};
  return plan;
}

std::string writeToText(const planner::PlanFile& plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  EXPECT_EQ(ir::describe(planner::writePlan(plan, os)), "");
  return os.str();
}

}  // namespace stowage::tests
