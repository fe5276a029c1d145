// SPDX-License-Identifier: Apache-2.0
//
// The whole chain for an exported step: import, measure, plan under a budget, verify, run inside
// the budget; losses and all state are compared byte for byte with the archive's own calls, one
// after another through libtorch's dispatcher. On a small archive written here, and on those of the
// folder that STOWAGE_DATA names (skipped without): its cuda/*.pt2 are imported and planned only.

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "ir/graph/liveness.h"
#include "ir/verify/verify.h"
#include "passes/manage/pass_manager.h"
#include "passes/pipeline.h"
#include "passes/plan_step.h"
#include "planner/targets/roofline.h"
#include "runtime/calibrate/calibrate.h"
#include "runtime/capture/pt2/pt2_import.h"
#include "runtime/runner/graph_step.h"
#include "runtime/runner/runner.h"
#include "tests/support/or_fail.h"
#include "tests/support/pt2_archives.h"
#include "tests/support/pt2_replay.h"
#include "tests/support/small_pt2.h"

namespace stowage::tests {
namespace {

constexpr int kSteps = 4;
constexpr uint64_t kSeed = 5;

std::string bytesOf(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  return {static_cast<const char*>(whole.const_data_ptr()), whole.nbytes()};
}

/// What a training leaves: losses, then each persistent storage by name.
struct Record {
  std::vector<std::string> losses;
  std::map<std::string, std::string> state;
};

class Pt2Chain : public testing::Test {
 protected:
  /// With list ops in buckets of `bucketBytes`: the parameters of one are all there at once, which
  /// is most of a small model with the default.
  void import(const std::string& path, const ir::Target& target, Bytes bucketBytes) {
    target_ = target;
    step_ = orFail(runtime::importTrainingStep(path, target));
    passes::PassState state;
    state.graph = step_.graph;
    const passes::PassManager manager(
        passes::makeNormalisingPasses({.bucketBytes = bucketBytes, .reorder = false}));
    orFail(manager.run(state));
    graph_ = std::move(state.graph);
  }

  Bytes keepAll(const ir::CostTable& costs) const {
    std::vector<Bytes> temporaries;
    const ir::NodeCosts nodes = orFail(ir::resolveCosts(graph_, costs));
    for (const ir::OpCost& cost : nodes.nodes) temporaries.push_back(cost.temporary);
    const auto held = ir::computeKeepAllBytes(graph_, target_.alignBytes, temporaries);
    return Bytes(*std::max_element(held.begin(), held.end()));
  }

  /// Verified.
  passes::PlannedStep planWithin(const ir::CostTable& costs, Bytes budget) const {
    passes::PlannedStep planned =
        orFail(passes::planStep(graph_, target_, costs, {.budget = budget}));
    const ir::NodeCosts nodes =
        orFail(ir::resolveCosts(planned.graph, passes::costsOf(planned, costs)));
    for (const ir::Violation& violation : ir::verify({.graph = planned.graph,
                                          .schedule = planned.schedule,
                                          .target = target_,
                                          .costs = &nodes,
                                          .budget = budget})) {
      ADD_FAILURE() << "V" << violation.rule << ": " << violation.message;
    }
    return planned;
  }

  const std::string& nameOf(ir::ValueId value) const {
    return step_.graph.storage(step_.graph.value(value).storage).name;
  }

  /// By position among the archive's inputs; the same in every call.
  std::vector<at::Tensor> firstValues() const {
    at::manual_seed(kSeed);
    std::vector<at::Tensor> values;
    for (const ir::ValueId value : step_.arguments) {
      values.push_back(makePt2Input(step_, value));
    }
    return values;
  }

  Record runEagerly(const std::string& path) const {
    const runtime::Pt2Graph draft = readPt2Draft(path);
    Pt2Replay replay(draft);
    const std::vector<at::Tensor> values = firstValues();
    for (size_t i = 0; i < values.size(); ++i) replay.setInput(i, values[i]);
    Record record;
    at::manual_seed(kSeed);
    for (int i = 0; i < kSteps; ++i) {
      orFail(replay.runStep());
      record.losses.push_back(bytesOf(replay.output(0)));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const ir::StorageId storage = step_.graph.value(step_.arguments[i]).storage;
      if (!step_.graph.storage(storage).persistent) continue;
      record.state[nameOf(step_.arguments[i])] = bytesOf(values[i]);
    }
    return record;
  }

  Record runByPlan(const passes::PlannedStep& planned, const ir::CostTable& costs) const {
    std::map<std::string, std::string> first;
    std::map<std::string, at::Tensor> given;
    std::vector<at::Tensor> values = firstValues();
    for (size_t i = 0; i < values.size(); ++i) {
      first[nameOf(step_.arguments[i])] = bytesOf(values[i]);
      given[nameOf(step_.arguments[i])] = values[i];
    }
    const auto step =
        orFail(runtime::GraphStep::make(graph_, [&](ir::StorageId id) -> ir::Expected<at::Tensor> {
          const std::string& bytes = first.at(graph_.storage(id).name);
          const at::Tensor copy = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
          std::memcpy(copy.data_ptr(), bytes.data(), bytes.size());
          return copy;
        }));
    const ir::NodeCosts nodes =
        orFail(ir::resolveCosts(planned.graph, passes::costsOf(planned, costs)));
    const auto runner = orFail(runtime::Runner::create(*step, {.graph = planned.graph,
                                                               .schedule = planned.schedule,
                                                               .target = target_,
                                                               .costs = &nodes}));
    std::vector<at::Tensor> inputs;
    for (const ir::ValueId id : step->inputs()) {
      inputs.push_back(given.at(graph_.storage(graph_.value(id).storage).name));
    }
    Record record;
    at::manual_seed(kSeed);
    for (int i = 0; i < kSteps; ++i) {
      record.losses.push_back(bytesOf(orFail(runner->step(inputs)).front()));
    }
    orFail(runner->visitState([&](const ir::Storage& storage, llvm::ArrayRef<uint8_t> bytes) {
      record.state[storage.name] = std::string(bytes.begin(), bytes.end());
      return ir::success();
    }));
    return record;
  }

  /// Runs at `percent` of what the step needs with nothing moved; prints a row of the report.
  void expectEqual(const std::string& path, int percent) {
    import(path, orFail(planner::findTargetProfile("cpu")), Bytes(1 << 18));
    target_.intraOpThreads = 1;
    ir::CostTable costs =
        orFail(runtime::calibrate(graph_, {.intraOpThreads = 1, .runs = 1, .known = {}}));
    costs.links = target_.links;
    const Bytes whole = keepAll(costs);
    const Bytes budget(whole.value() * percent / 100 / target_.alignBytes * target_.alignBytes);
    const passes::PlannedStep planned = planWithin(costs, budget);
    const Record eager = runEagerly(path);
    const Record byPlan = runByPlan(planned, costs);
    EXPECT_EQ(byPlan.losses, eager.losses) << path;
    EXPECT_EQ(byPlan.state.size(), eager.state.size()) << path;
    for (const auto& [name, bytes] : byPlan.state) {
      EXPECT_TRUE(bytes == eager.state.at(name)) << path << ": " << name << " after the last step";
    }
    EXPECT_NE(eager.losses.front(), eager.losses.back()) << path << " learns nothing";
    std::printf(
        "%s: %zu nodes, %zu storages, peak %lld, budget %lld, %zu commands, %d steps, "
        "%zu states compared\n",
        std::filesystem::path(path).filename().c_str(), graph_.nodes().size(),
        graph_.storages().size(), static_cast<long long>(whole.value()),
        static_cast<long long>(budget.value()), planned.schedule.commands.size(), kSteps,
        byPlan.state.size());
  }

  ir::Target target_;
  runtime::ImportedStep step_;
  ir::Graph graph_;
};

TEST_F(Pt2Chain, SmallArchiveEqualsItsCalls) {
  const std::string path =
      writePt2("pt2_chain", packPt2(smallStepProgram().dump()), smallStepSideFile());
  expectEqual(path, 100);
}

TEST_F(Pt2Chain, CpuArchivesEqualTheirCallsWithinSixtyPercent) {
  const std::vector<std::string> paths = pt2ArchivesIn("cpu");
  if (paths.empty()) GTEST_SKIP() << "STOWAGE_DATA names no folder with archives";
  for (const std::string& path : paths) expectEqual(path, 60);
}

TEST_F(Pt2Chain, CudaArchivesArePlannedWithinSixtyPercent) {
  const std::vector<std::string> paths = pt2ArchivesIn("cuda");
  if (paths.empty()) GTEST_SKIP() << "STOWAGE_DATA names no folder with archives";
  for (const std::string& path : paths) {
    import(path, orFail(planner::findTargetProfile("h200")),
           passes::NormaliseOptions().bucketBytes);
    const ir::CostTable costs = planner::rooflineCosts(graph_, target_);
    const Bytes whole = keepAll(costs);
    const auto begin = std::chrono::steady_clock::now();
    const passes::PlannedStep planned =
        planWithin(costs, Bytes(whole.value() * 6 / 10 / 512 * 512));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf(
        "%s: %zu nodes, %zu storages, peak %.2f GiB, planned at 60 %% in %.1f s, %zu commands\n",
        std::filesystem::path(path).filename().c_str(), graph_.nodes().size(),
        graph_.storages().size(), static_cast<double>(whole.value()) / double(1 << 30),
        seconds.count(), planned.schedule.commands.size());
  }
}

}  // namespace
}  // namespace stowage::tests
