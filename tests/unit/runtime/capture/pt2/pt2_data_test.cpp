// SPDX-License-Identifier: Apache-2.0
//
// Archives of whole models: the folder STOWAGE_DATA names has `cpu/*.pt2` and `cuda/*.pt2`, each
// with its `.json` beside it. Skipped without it.
// CPU archives are run call by call and every tensor is compared with the import; CUDA archives are
// imported and their peak is compared with the measured one.

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ir/graph/liveness.h"
#include "tests/support/pt2_archives.h"
#include "tests/support/pt2_replay.h"

namespace stowage::tests {
namespace {

using runtime::ImportedStep;

constexpr int kSteps = 3;

ImportedStep importFor(const std::string& path, const char* profile, ir::DeviceKind device) {
  ir::Expected<ImportedStep> step =
      runtime::importTrainingStep(path, {.profile = profile, .device = device});
  if (step) return std::move(*step);
  ADD_FAILURE() << ir::describe(step.takeError());
  return {.graph = ir::GraphBuilder("none").finish()};
}

TEST(Pt2Data, CpuArchivesRunAsImported) {
  const std::vector<std::string> paths = pt2ArchivesIn("cpu");
  if (paths.empty()) GTEST_SKIP() << "STOWAGE_DATA names no folder with archives";
  for (const std::string& path : paths) {
    const ImportedStep step = importFor(path, "cpu", ir::DeviceKind::kCpu);
    const runtime::Pt2Graph draft = readPt2Draft(path);
    Pt2Replay replay(draft);
    at::manual_seed(1);
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      replay.setInput(i, makePt2Input(step, step.arguments[i]));
    }
    std::vector<double> losses;
    for (int i = 0; i < kSteps; ++i) {
      at::manual_seed(static_cast<uint64_t>(10 + i));
      ir::Error error = replay.runStep();
      ASSERT_FALSE(bool(error)) << path << ": " << ir::describe(std::move(error));
      losses.push_back(replay.output(0).to(at::kDouble).item<double>());
    }
    EXPECT_LT(losses.back(), losses.front()) << path;
    std::printf("%s: %zu nodes of %zu, losses %.9g %.9g %.9g\n", path.c_str(),
                step.graph.nodes().size(), draft.calls.nodes().size(), losses[0], losses[1],
                losses[2]);
  }
}

TEST(Pt2Data, CudaArchivesImportWithoutAGpu) {
  const std::vector<std::string> paths = pt2ArchivesIn("cuda");
  if (paths.empty()) GTEST_SKIP() << "STOWAGE_DATA names no folder with archives";
  for (const std::string& path : paths) {
    const auto begin = std::chrono::steady_clock::now();
    const ImportedStep step = importFor(path, "h200", ir::DeviceKind::kCuda);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const std::vector<Bytes> none(step.graph.nodes().size());
    const std::vector<int64_t> held = ir::computeKeepAllBytes(step.graph, 512, none);
    ASSERT_FALSE(held.empty());
    const double peak =
        static_cast<double>(*std::max_element(held.begin(), held.end())) / double(1 << 30);
    std::ifstream side(path.substr(0, path.size() - 4) + ".json");
    const double measured = nlohmann::json::parse(side)["measured"]["fx_interpreter_peak_GiB"];
    // The measured peak has the temporaries of the ops in it.
    EXPECT_LE(peak, measured) << path;
    EXPECT_GE(peak, 0.9 * measured) << path;
    std::printf("%s: %.3f s, %zu nodes, %zu storages, keep all %.2f GiB, measured %.2f GiB\n",
                path.c_str(), seconds.count(), step.graph.nodes().size(),
                step.graph.storages().size(), peak, measured);
  }
}

}  // namespace
}  // namespace stowage::tests
