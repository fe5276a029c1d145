// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pt2_archives.h"

#include <ATen/Functions.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "runtime/capture/pt2/pt2_json.h"
#include "runtime/capture/pt2/pt2_zip.h"
#include "runtime/torch/torch_types.h"

namespace stowage::tests {

std::vector<std::string> pt2ArchivesIn(const std::string& folder) {
  const char* data = std::getenv("STOWAGE_DATA");
  std::vector<std::string> paths;
  if (data == nullptr) return paths;
  for (const auto& entry : std::filesystem::directory_iterator(data + ("/" + folder))) {
    if (entry.path().extension() == ".pt2") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

runtime::Pt2Graph readPt2Draft(const std::string& path) {
  const auto archive = llvm::cantFail(runtime::ZipArchive::open(path));
  const auto* entry = llvm::find_if(archive.entries(), [](const runtime::ZipEntry& candidate) {
    return candidate.name.contains("models/");
  });
  const auto program =
      llvm::cantFail(runtime::readPt2Program(llvm::cantFail(archive.read(entry->name)), path));
  runtime::Pt2Ops ops;
  const ir::Target cpu{.profile = "cpu", .device = ir::DeviceKind::kCpu};
  auto draft = llvm::cantFail(runtime::makePt2Graph(program, ops, cpu, "draft", {.device = "cpu"}));
  draft.ops.clear();  // they end with `ops`
  return draft;
}

at::Tensor makePt2Input(const runtime::ImportedStep& step, ir::ValueId id) {
  const ir::Value& value = step.graph.value(id);
  const auto dtype = runtime::toScalarType(value.type.dtype);
  const std::vector<int64_t> sizes(value.type.sizes.begin(), value.type.sizes.end());
  if (!at::isFloatingType(dtype)) return at::randint(100, sizes, at::kLong).to(dtype);
  if (llvm::is_contained(step.learningRates, id)) return at::full(sizes, 1e-3, dtype);
  switch (step.graph.storage(value.storage).role) {
    case ir::Role::kState:
    case ir::Role::kStepCounter:
      return at::zeros(sizes, dtype);
    case ir::Role::kParameter:
      return at::randn(sizes).mul_(0.05).to(dtype);
    default:
      return at::rand(sizes).to(dtype);
  }
}

}  // namespace stowage::tests
