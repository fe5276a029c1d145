// SPDX-License-Identifier: Apache-2.0
//
// What a plan for a GPU takes from captures and costs, made where there is none: kernels are those
// of the target, costs those of a GPU, and ops inside a CUDA graph have no launch overhead.
#include <gtest/gtest.h>

#include <llvm/Support/raw_ostream.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ir/text/parser.h"
#include "planner/files/cost_json.h"
#include "planner/targets/roofline.h"
#include "planner/targets/torch_libraries.h"
#include "tests/support/or_fail.h"
#include "tests/support/program.h"

namespace stowage::tests {
namespace {

using nlohmann::json;

constexpr const char* kH200 = "NVIDIA H200, driver 580.159.04, CUDA 13.0, cuDNN 9.19";

class GpuPlans : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace("stowage_gpu_plans");
    ASSERT_EQ(capture("h200", "step.stow"), 0);
    writeCostsOf(kH200, "costs.json");
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string at(const std::string& name) { return folder_->at(name); }
  static json fileOf(const std::string& name) { return json::parse(readText(at(name))); }

  static int capture(const std::string& target, const std::string& name) {
    return stowage(
               "capture gpt2 --set precision=bfloat16 --set optimizer=stowage_adamw --device cuda "
               "--target " +
               target + " -o " + at(name))
        .code;
  }

  static constexpr int64_t kLaunch = 50'000;  // ns of launch overhead: far more than an op's work

  /// As if measured on `device`: each op takes what the profile says, with launch overhead kLaunch;
  /// copies likewise.
  static void writeCostsOf(const std::string& device, const std::string& name) {
    const ir::Graph graph = orFail(ir::parseGraph(readText(at("step.stow"))));
    planner::CostFile file = {
        .stowageVersion = "0.1.0",
        .torchVersion = planner::torchOf(graph),
        .table = planner::rooflineCosts(graph, orFail(planner::findTargetProfile("h200")))};
    file.table.source = ir::CostSource::kMeasured;
    file.table.device = device;
    for (auto& [signature, cost] : file.table.bySignature) cost.launch = Nanoseconds(kLaunch);
    file.table.links.launch = Nanoseconds(kLaunch);
    std::string text;
    llvm::raw_string_ostream os(text);
    orFail(planner::writeCosts(file, os));
    writeText(at(name), os.str());
  }

  static int64_t sumOfWork() {
    const ir::Graph graph = orFail(ir::parseGraph(readText(at("step.stow"))));
    const ir::CostTable costs =
        planner::rooflineCosts(graph, orFail(planner::findTargetProfile("h200")));
    int64_t sum = 0;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      sum += costs.bySignature.at(ir::nodeSignature(graph, ir::NodeId(i))).work.value();
    }
    return sum;
  }

  static Outcome plan(const std::string& more, const std::string& costs = "costs.json") {
    return stowage("plan " + at("step.stow") + " --costs " + at(costs) + " -f -o " +
                   at("plan.json") + " " + more);
  }

  static std::optional<ScratchFolder> folder_;
};
std::optional<ScratchFolder> GpuPlans::folder_;

TEST_F(GpuPlans, AStepIsPlannedForTheArchitectureThatItWasCapturedFor) {
  ASSERT_EQ(capture("a100", "a100.stow"), 0);
  const Outcome other = stowage("plan " + at("a100.stow") + " --target h200 --budget 100%peak");
  EXPECT_EQ(other.code, 2) << other.text;
  EXPECT_TRUE(other.says("captured for target 'a100'")) << other.text;
  EXPECT_TRUE(other.says("other kernels on 'h200'")) << other.text;
  ASSERT_EQ(capture("l40s", "l40s.stow"), 0);
  EXPECT_EQ(stowage("plan " + at("l40s.stow") + " --target rtx4090 --budget 100%peak").code, 0);
}

TEST_F(GpuPlans, CostsAreThoseOfAGpu) {
  writeCostsOf("cpu, 2 threads", "cpu.json");
  const Outcome cpu = plan("--budget 100%peak", "cpu.json");
  EXPECT_EQ(cpu.code, 3) << cpu.text;
  EXPECT_TRUE(cpu.says("measured on 'cpu, 2 threads', the plan is for target 'h200'")) << cpu.text;
  writeCostsOf("NVIDIA A100-SXM4-80GB, CUDA 12.4, cuDNN 9.19", "a100.json");
  const Outcome a100 = plan("--budget 100%peak", "a100.json");
  EXPECT_EQ(a100.code, 0) << a100.text;
  EXPECT_TRUE(a100.says("measured on 'NVIDIA A100-SXM4-80GB")) << a100.text;
  const Outcome own = plan("--budget 100%peak");
  EXPECT_FALSE(own.says("measured on")) << own.text;
}

TEST_F(GpuPlans, APlanFromAnEstimateSaysSoFirst) {
  const std::string step = at("step.stow") + " -q --budget 100%peak";
  const std::string estimate = "from the profile h200, not measured: +-10 % of the step's time";
  const Outcome text = stowage("plan " + step);
  EXPECT_EQ(text.text.find("estimated  " + estimate), 0U) << text.text;
  const Outcome json = stowage("plan --json " + step);
  EXPECT_EQ(json.text.find("{\n  \"estimated\": \"" + estimate), 0U) << json.text;
  EXPECT_TRUE(json.says("\"error_percent\": 10")) << json.text;
  const Outcome measured = plan("-q --budget 100%peak");
  EXPECT_EQ(measured.text.find("fits "), 0U) << measured.text;
}

TEST_F(GpuPlans, OpsInsideAGraphHaveNoLaunchOverhead) {
  std::map<std::string, int64_t> compute;
  std::map<std::string, int64_t> beside;
  for (const std::string mode : {"none", "no_update", "whole"}) {
    const Outcome planned = plan("--budget 64MiB --launch " + mode);
    ASSERT_EQ(planned.code, 0) << mode << '\n' << planned.text;
    compute[mode] = fileOf("plan.json")["predicted"]["compute_ns"];
    beside[mode] = fileOf("plan.json")["target"]["outside_bytes"];
    for (const std::string verb : {"verify ", "explain ", "lower "}) {
      const std::string output = verb == "lower " ? " -f -o " + at("lowered.json") : "";
      const Outcome read = stowage(verb + at("plan.json") + output);
      EXPECT_EQ(read.code, 0) << verb << mode << '\n' << read.text;
    }
    EXPECT_EQ(fileOf("lowered.json")["predicted"]["compute_ns"], compute[mode]) << mode;
  }
  const auto nodes =
      static_cast<int64_t>(orFail(ir::parseGraph(readText(at("step.stow")))).nodes().size());
  EXPECT_EQ(compute["none"], kLaunch * nodes);
  EXPECT_EQ(compute["whole"], sumOfWork());
  EXPECT_EQ(compute["no_update"], compute["whole"])
      << "the few updates are launched while the graph runs";
  EXPECT_GT(beside["no_update"], beside["none"]) << "a recorded graph takes memory";
  EXPECT_GT(beside["whole"], beside["no_update"]);
}

TEST_F(GpuPlans, CopiesHaveLaunchOverheadAsOpsDo) {
  ASSERT_EQ(plan("--budget 36.5MiB --allow offload,in-place-reuse").code, 0);
  const json planned = fileOf("plan.json");
  int64_t copies = 0;
  for (const json& command : planned["commands"]) copies += command["op"] == "copy" ? 1 : 0;
  EXPECT_GT(copies, 10);
  EXPECT_EQ(planned["predicted"]["step_ns"],
            kLaunch * static_cast<int64_t>(planned["commands"].size()));
  EXPECT_EQ(stowage("verify " + at("plan.json")).code, 0);
  const Outcome explained = stowage("explain " + at("plan.json"));
  EXPECT_TRUE(explained.says("launch     compute waits ")) << explained.text;
  EXPECT_TRUE(explained.says("helps      'stowage plan --launch ")) << explained.text;
  const Outcome answer = stowage("explain --json " + at("plan.json"));
  ASSERT_EQ(answer.code, 0);
  const json tip = json::parse(answer.text)["helps"].at(0);
  ASSERT_TRUE(tip.contains("launch")) << answer.text;
  EXPECT_GT(tip["step_at_best_ns"], 0);
  EXPECT_TRUE(explained.says("--launch " + tip["launch"].get<std::string>() + "'"));
  // Nothing but the few updates has launch overhead.
  ASSERT_EQ(plan("--budget 64MiB --launch no_update").code, 0);
  const Outcome graph = stowage("explain " + at("plan.json"));
  EXPECT_FALSE(graph.says("--launch")) << graph.text;
}

TEST_F(GpuPlans, TimesOfSingleCommandsAreForStepsWithoutGraphs) {
  ASSERT_EQ(plan("--budget 64MiB --launch no_update").code, 0);
  const Outcome outcome =
      stowage("run " + at("plan.json") + " --steps 5 --timeline " + at("timeline.json"));
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_TRUE(outcome.says("--timeline: the plan launches CUDA graphs")) << outcome.text;
}

TEST_F(GpuPlans, ABudgetBeyondTheDeviceIsRemarkedOn) {
  const Outcome large = plan("--budget 200GiB");
  EXPECT_EQ(large.code, 0) << large.text;
  EXPECT_TRUE(large.says("more than the 139.00 GiB of target 'h200'")) << large.text;
  EXPECT_FALSE(plan("--budget 64MiB").says("cannot run there"));
}

}  // namespace
}  // namespace stowage::tests
