// SPDX-License-Identifier: Apache-2.0
//
// What a plan file says of its graph and its machine, and that another graph or machine is refused.
#include "planner/files/plan_file.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ir/schedule/fingerprint.h"
#include "tests/support/sample_plan.h"

namespace stowage::planner {
namespace {

using tests::makeSampleGraph;
using tests::makeSamplePlan;

std::string graphError(const PlanFile& plan, const ir::Graph& graph = makeSampleGraph()) {
  return ir::describe(checkPlanGraph(plan, graph));
}

// The sample's decisions are one row for w (storage 1) and two for h (storage 2), of 16 B each.
TEST(PlanFile, RepeatsOfItsGraphWhatPeopleRead) {
  const ir::Graph graph = makeSampleGraph();
  ir::Schedule schedule = makeSamplePlan().schedule;
  const PlanFile plan = makePlanFile(graph, tests::makeSampleTarget(), schedule, Bytes(4096));
  EXPECT_EQ(plan.graph.fingerprint, ir::fingerprint(graph));
  EXPECT_EQ(plan.graph.nodes, 3);
  EXPECT_EQ(plan.graph.storages, 4);
  EXPECT_EQ(plan.graph.stepsCaptured, 4);
  EXPECT_EQ(plan.budget, Bytes(4096));
  EXPECT_EQ(plan.target.profile, "h200");
  EXPECT_EQ(plan.schedule, schedule);
  const std::vector<std::string> names = {"w", "a \"quoted\" name", "a \"quoted\" name"};
  ASSERT_EQ(plan.labels.size(), names.size());
  for (size_t row = 0; row < names.size(); ++row) {
    EXPECT_EQ(plan.labels[row].name, names[row]);
    EXPECT_EQ(plan.labels[row].bytes, Bytes(16));
    EXPECT_EQ(plan.labels[row].place, row);
  }
}

TEST(PlanFile, AnotherGraphIsRefused) {
  PlanFile plan = makeSamplePlan();
  plan.path = "plan.json";
  EXPECT_EQ(graphError(plan), "");
  ir::GraphBuilder builder(makeSampleGraph());
  const ir::PlanError error = ir::takePayload(checkPlanGraph(plan, std::move(builder).finish()));
  EXPECT_EQ(error.code(), ir::ErrorCode::kPlanMismatch);
  EXPECT_EQ(error.location().file, "plan.json");
  EXPECT_NE(error.text().find("expected the plan's, " + plan.graph.fingerprint), std::string::npos)
      << error.text();
}

TEST(PlanFile, CountsThatAreNotTheGraphsAreRefused) {
  PlanFile plan = makeSamplePlan();
  plan.graph.nodes = 2;
  EXPECT_EQ(graphError(plan), "the plan says that its graph has 2 nodes, found 3");
  plan.graph.nodes = 3;
  plan.graph.storages = 5;
  EXPECT_EQ(graphError(plan), "the plan says that its graph has 5 storages, found 4");
}

TEST(PlanFile, ADecisionWhoseIdAndNameDisagreeIsRefused) {
  PlanFile plan = makeSamplePlan();
  plan.schedule.decisions[0].storage = ir::StorageId(0);
  EXPECT_EQ(graphError(plan),
            "at /decisions/0/name: found 'w', expected the name of storage 0, 'x'");
}

TEST(PlanFile, ADecisionWhoseBytesAreNotTheStoragesIsRefused) {
  PlanFile plan = makeSamplePlan();
  plan.labels[2].bytes = Bytes(17);
  plan.labels[2].place = 7;  // where the file had it
  EXPECT_EQ(graphError(plan),
            "at /decisions/7/bytes: found 17, expected the size of storage 2, 16");
}

TEST(PlanFile, AnotherMachineIsRefusedWithWhatDiffers) {
  const PlanFile plan = makeSamplePlan();
  ir::Target machine = plan.target;
  EXPECT_EQ(ir::describe(checkPlanTarget(plan, machine)), "");
  machine.intraOpThreads = 1;
  machine.reserved[0].bytes = Bytes(128);
  EXPECT_EQ(ir::describe(checkPlanTarget(plan, machine)),
            "the plan is for another machine, profile 'h200'\n"
            "  threads of an op: found 1, the plan expects 2\n"
            "  reserved regions: found cublas on stream 0 of 128 bytes, the plan expects cublas on "
            "stream 0 of 64 bytes");
}

TEST(PlanFile, EachPropertyOfTheMachineThatBitsDependOnIsCompared) {
  const PlanFile plan = makeSamplePlan();
  const std::vector<std::pair<std::string, std::function<void(ir::Target&)>>> changes = {
      {"device: found cpu, the plan expects cuda",
       [](ir::Target& machine) { machine.device = ir::DeviceKind::kCpu; }},
      {"compute capability: found 80, the plan expects 90",
       [](ir::Target& machine) { machine.computeCapability = 80; }},
      {"alignment in bytes: found 64, the plan expects 512",
       [](ir::Target& machine) { machine.alignBytes = 64; }},
      {"threads of an op: found 4, the plan expects 2",
       [](ir::Target& machine) { machine.intraOpThreads = 4; }},
      {"deterministic mode: found off, the plan expects on",
       [](ir::Target& machine) { machine.deterministic = false; }},
      {"libraries: found cublas 13.0, the plan expects cublas 13.0, cudnn 9.19",
       [](ir::Target& machine) { machine.libraries.pop_back(); }},
      {"libraries: found none, the plan expects cublas 13.0, cudnn 9.19",
       [](ir::Target& machine) { machine.libraries.clear(); }},
      {"reserved regions: found none, the plan expects cublas on stream 0 of 64 bytes",
       [](ir::Target& machine) { machine.reserved.clear(); }},
  };
  for (const auto& [note, change] : changes) {
    ir::Target machine = plan.target;
    change(machine);
    const ir::PlanError error = ir::takePayload(checkPlanTarget(plan, machine));
    EXPECT_EQ(error.code(), ir::ErrorCode::kPlanMismatch);
    std::vector<std::string> notes = {note};
    if (note.starts_with("libraries: ")) {
      notes.emplace_back(
          "libraries choose kernels: capture, profile and plan the step again with these");
    }
    EXPECT_EQ(error.notes(), notes);
  }
}

// A machine with other estimates, or of another name, runs the plan with the same bits.
TEST(PlanFile, EstimatesAreNoIdentity) {
  const PlanFile plan = makeSamplePlan();
  ir::Target machine = plan.target;
  machine.profile = "this machine";
  machine.memory = Bytes(1);
  machine.outside = Bytes(1);
  machine.flopsPerSecond.clear();
  machine.memoryBandwidth = BytesPerSecond(1);
  machine.kernelOverhead = Nanoseconds(1);
  machine.links = {};
  EXPECT_EQ(ir::describe(checkPlanTarget(plan, machine)), "");
}

}  // namespace
}  // namespace stowage::planner
