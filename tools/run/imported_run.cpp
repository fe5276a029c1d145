// SPDX-License-Identifier: Apache-2.0
#include "tools/run/imported_run.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>

#include <cstring>
#include <utility>

#include "ir/base/affix.h"
#include "runtime/checkpoint/state_names.h"
#include "runtime/torch/torch_types.h"
#include "tools/models/random_values.h"
#include "tools/training/model_step.h"

namespace stowage::tools {

namespace {

constexpr size_t kNamesShown = 8;
constexpr double kRandomSpread = 0.02;

ir::Error badArgument(std::string text) {
  return ir::makeError(ir::ErrorCode::kInvalidArgument, std::move(text));
}

/// The largest value of a storage, whose type is that of the tensor in files.
const ir::Value* findValue(const ir::Graph& graph, ir::StorageId storage) {
  const ir::Value* whole = nullptr;
  for (const ir::Value& value : graph.values()) {
    if (value.storage != storage) continue;
    const bool isLarger = whole == nullptr || value.type.numElements() > whole->type.numElements();
    if (isLarger) whole = &value;
  }
  return whole;
}

}  // namespace

ir::Expected<std::unique_ptr<ImportedRun>> ImportedRun::open(const ir::Graph& graph,
                                                             const ImportedRunOptions& options) {
  std::unique_ptr<ImportedRun> run(new ImportedRun());
  run->graph_ = &graph;
  run->random_ = options.randomWeights;
  run->seed_ = options.seed;
  ir::Expected<std::unique_ptr<runtime::GraphStep>> step = runtime::GraphStep::make(
      graph, [self = run.get()](ir::StorageId id) { return self->firstBytes(id); });
  if (!step) return step.takeError();
  run->step_ = std::move(*step);
  if (ir::Error error = run->findInputs(options)) return error;
  if (ir::Error error = run->openValues(options)) return error;
  return run;
}

ir::Error ImportedRun::findInputs(const ImportedRunOptions& options) {
  const std::vector<ir::ValueId>& rates = step_->learningRates();
  if (options.learningRate && rates.empty()) {
    return badArgument(
        "--lr: the learning rate of this step is frozen as it was traced; export the step with the "
        "rate as a tensor that is an input");
  }
  for (const ir::ValueId id : step_->inputs()) {
    const ir::Value& value = graph_->value(id);
    const c10::ScalarType dtype = runtime::toScalarType(value.type.dtype);
    const std::vector<int64_t> sizes(value.type.sizes.begin(), value.type.sizes.end());
    const std::string& name = graph_->storage(value.storage).name;
    const bool isRate = llvm::is_contained(rates, id);
    rates_.emplace_back();
    if (isRate && (options.learningRate || options.isTrial)) {
      const double rate = options.learningRate.value_or(0);
      rates_.back() = at::full(sizes, rate, at::TensorOptions().dtype(dtype));
      continue;
    }
    if (isRate && !options.hasData) {
      return badArgument("the step takes its learning rate '" + name +
                         "' as an input: --lr gives one for all steps, a --data file with a tensor "
                         "'" +
                         name + "' one per step");
    }
    const runtime::InputBound bound = runtime::findInputBound(*graph_, value.storage);
    inputs_.push_back({.name = name,
                       .sizes = sizes,
                       .dtype = dtype,
                       .upperBound = bound.isIndex && dtype == c10::kLong ? bound.bound : 0,
                       .drawBelow = bound.bound});
  }
  return ir::success();
}

runtime::Batch ImportedRun::withRates(runtime::Batch batch) const {
  runtime::Batch whole;
  size_t next = 0;
  for (const std::optional<at::Tensor>& rate : rates_) {
    whole.push_back(rate ? *rate : batch[next++]);
  }
  return whole;
}

/// Given storages that the archive does not hold, by name.
std::vector<std::string> ImportedRun::missingIn(bool constantsOnly) const {
  std::vector<std::string> missing;
  for (const ir::StorageId id : step_->givenStorages()) {
    const ir::Storage& storage = graph_->storage(id);
    if (constantsOnly && runtime::isModelState(storage)) continue;
    if (!archive_ || !archive_->holds(storage.name)) missing.push_back(storage.name);
  }
  return missing;
}

ir::Error ImportedRun::openArchive(const std::string& path, const std::string& fingerprint) {
  ir::Expected<runtime::ArchiveWeights> archive = runtime::ArchiveWeights::open(path);
  if (!archive) return archive.takeError();
  ir::Expected<std::string> found = runtime::archiveFingerprint(path);
  if (!found) return found.takeError();
  if (!fingerprint.empty() && *found != fingerprint) {
    return ir::makeError(
        ir::PlanError(ir::ErrorCode::kPlanMismatch, "found the archive " + *found +
                                                        ", the step was captured from " +
                                                        fingerprint + "; capture it again")
            .at({.file = path}));
  }
  archive_ = std::move(*archive);
  return ir::success();
}

ir::Error ImportedRun::openValues(const ImportedRunOptions& options) {
  const bool hasWeights = !options.weights.empty();
  ir::Expected<Recipe> recipe = parseRecipe(graph_->provenance().recipe);
  if (!recipe) return recipe.takeError();
  std::string path = options.archive;
  if (path.empty()) {
    llvm::SmallString<256> beside(options.folder);
    llvm::sys::path::append(beside, recipe->model);
    path = beside.str().str();
  }
  // Constants are the archive's, wherever weights come from.
  const bool drawn = random_ || hasWeights;
  const bool needsArchive = !drawn || !missingIn(/*constantsOnly=*/true).empty();
  const bool isThere = llvm::sys::fs::exists(path);
  if (needsArchive && (isThere || !options.archive.empty())) {
    if (ir::Error error = openArchive(path, recipe->fingerprint)) return error;
  }
  if (random_) {
    origin_ = "random first values";
    return ir::success();
  }
  origin_ = hasWeights ? "weights of " + options.weights.front() : "weights of " + path;
  const std::vector<std::string> missing = missingIn(hasWeights);
  if (missing.empty()) return ir::success();
  ir::PlanError error(
      ir::ErrorCode::kInvalidArgument,
      std::to_string(missing.size()) + " tensors have no first values: " +
          (isThere ? path + " does not hold them" : "there is no " + path + " to take them from") +
          "; --weights names safetensors files with them, --archive the .pt2 file, "
          "--random-weights draws them for a trial");
  for (size_t i = 0; i < std::min(missing.size(), kNamesShown); ++i) {
    error.note("missing: '" + missing[i] + "'");
  }
  if (missing.size() > kNamesShown) {
    error.note("and " + std::to_string(missing.size() - kNamesShown) + " more");
  }
  return ir::makeError(std::move(error));
}

/// Small numbers; ones for vectors called weight, which scale what a norm gives.
at::Tensor ImportedRun::drawBytes(ir::StorageId storage) const {
  const ir::Storage& info = graph_->storage(storage);
  const ir::Value* value = findValue(*graph_, storage);
  if (value == nullptr || !at::isFloatingType(runtime::toScalarType(value->type.dtype))) {
    return at::zeros({info.bytes.value()}, at::kByte);
  }
  const auto dtype = runtime::toScalarType(value->type.dtype);
  const int64_t count = info.bytes.value() / ir::elementBytes(value->type.dtype);
  const bool isScale = value->type.sizes.size() == 1 && ir::endsWith(info.name, "weight");
  if (isScale) return at::full({count}, 1.0, at::TensorOptions().dtype(dtype)).view(at::kByte);
  const uint64_t own = seed_ * 1'000'003 + storage.index();
  return drawNormal({count}, dtype, own, kRandomSpread).view(at::kByte);
}

ir::Expected<at::Tensor> ImportedRun::firstBytes(ir::StorageId storage) const {
  const ir::Storage& info = graph_->storage(storage);
  const bool inArchive = archive_ && archive_->holds(info.name);
  if (random_ && (runtime::isModelState(info) || !inArchive)) return drawBytes(storage);
  const ir::Value* value = findValue(*graph_, storage);
  if (!archive_ || value == nullptr) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument, "'" + info.name + "' has no first value");
  }
  ir::Expected<llvm::StringRef> bytes = archive_->read(info.name, value->type);
  if (!bytes) return bytes.takeError();
  at::Tensor made = at::zeros({info.bytes.value()}, at::kByte);
  std::memcpy(made.data_ptr(), bytes->data(), std::min(made.nbytes(), bytes->size()));
  return made;
}

}  // namespace stowage::tools
