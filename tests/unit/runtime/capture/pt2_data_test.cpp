// SPDX-License-Identifier: Apache-2.0
//
// Archives of whole models, which are no part of this repository: the folder STOWAGE_DATA names has
// `cpu/*.pt2` and `cuda/*.pt2`, each with its `.json` beside it. Skipped without it.
// CPU archives are run node by node and every tensor is compared with the import; CUDA archives are
// imported and their peak is compared with the measured one.

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/check_graph.h"
#include "ir/liveness.h"
#include "runtime/capture/pt2_import.h"
#include "runtime/capture/pt2_json.h"
#include "runtime/capture/pt2_zip.h"
#include "runtime/torch_types.h"
#include "tests/support/pt2_replay.h"

namespace stowage::tests {
namespace {

using runtime::ImportedStep;
using runtime::Pt2Program;

constexpr int kSteps = 3;

std::vector<std::string> archivesIn(const std::string& folder) {
  const char* data = std::getenv("STOWAGE_DATA");
  std::vector<std::string> paths;
  if (data == nullptr) return paths;
  for (const auto& entry : std::filesystem::directory_iterator(data + ("/" + folder))) {
    if (entry.path().extension() == ".pt2") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Pt2Program readProgram(const std::string& path) {
  auto archive = llvm::cantFail(runtime::ZipReader::open(path));
  for (const runtime::ZipEntry& entry : archive.entries()) {
    if (entry.name.find("/models/") == std::string::npos) continue;
    return llvm::cantFail(runtime::readPt2Program(
        llvm::cantFail(archive.read(entry, int64_t{1} << 30)), path));
  }
  return {};
}

/// First values: small random weights, zero state, tokens below 100; a rate of 1e-3.
at::Tensor firstValue(const ImportedStep& step, ir::ValueId id) {
  const ir::Value& value = step.graph.value(id);
  const ir::Storage& storage = step.graph.storage(value.storage);
  const auto dtype = runtime::toScalarType(value.type.dtype);
  const std::vector<int64_t> sizes(value.type.sizes.begin(), value.type.sizes.end());
  if (!at::isFloatingType(dtype)) return at::randint(100, sizes, at::kLong).to(dtype);
  if (std::find(step.learningRates.begin(), step.learningRates.end(), id) !=
      step.learningRates.end()) {
    return at::full(sizes, 1e-3, dtype);
  }
  switch (storage.role) {
    case ir::Role::kState:
    case ir::Role::kStepCounter:
      return at::zeros(sizes, dtype);
    case ir::Role::kParameter:
      return (at::randn(sizes) * 0.05).to(dtype);
    default:
      return at::rand(sizes).to(dtype);
  }
}

TEST(Pt2Data, CpuArchivesRunAsImported) {
  const std::vector<std::string> paths = archivesIn("cpu");
  if (paths.empty()) GTEST_SKIP() << "STOWAGE_DATA names no folder with archives";
  for (const std::string& path : paths) {
    const ImportedStep step = llvm::cantFail(runtime::importTrainingStep(
        path, {.profile = "cpu", .device = ir::DeviceKind::kCpu}));
    const Pt2Program program = readProgram(path);
    runtime::Pt2Ops ops;
    const runtime::Pt2Graph draft =
        llvm::cantFail(runtime::makePt2Graph(program, ops, "step", {.device = "cpu"}));
    Pt2Replay replay(program, draft);
    at::manual_seed(1);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      replay.setInput(i, firstValue(step, step.inputs[i]));
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
                step.graph.nodes().size(), program.nodes.size(), losses[0], losses[1], losses[2]);
  }
}

TEST(Pt2Data, CudaArchivesImportWithoutAGpu) {
  const std::vector<std::string> paths = archivesIn("cuda");
  if (paths.empty()) GTEST_SKIP() << "STOWAGE_DATA names no folder with archives";
  for (const std::string& path : paths) {
    const auto begin = std::chrono::steady_clock::now();
    const ImportedStep step = llvm::cantFail(runtime::importTrainingStep(
        path, {.profile = "h200", .device = ir::DeviceKind::kCuda}));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    ir::Error error = ir::checkGraph(step.graph);
    ASSERT_FALSE(bool(error)) << path << ": " << ir::describe(std::move(error));
    const std::vector<Bytes> none(step.graph.nodes().size());
    const std::vector<int64_t> held = ir::computeKeepAllBytes(step.graph, 512, none);
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
