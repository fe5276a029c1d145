// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/checkpoint.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/FileSystem.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "ir/base/affix.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/state_names.h"
#include "runtime/executor/boundary_state.h"

namespace stowage::runtime {

namespace {

constexpr const char* kGenerator = "generator.cpu";
constexpr const char* kVersion = "1.0";
constexpr const char* kStepsKey = "stowage.steps";
constexpr const char* kPositionKey = "stowage.data_position";
constexpr const char* kPlanKey = "stowage.plan";
constexpr const char* kRatesKey = "stowage.learning_rates";
constexpr double kMostRate = 1e9;  // as of a rate that a user gives
constexpr const char* kNotePrefix = "stowage.note.";

std::string exactText(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}

std::string ratesText(llvm::ArrayRef<double> rates) {
  std::string text;
  for (const double rate : rates) text += (text.empty() ? "" : ",") + exactText(rate);
  return text;
}

/// As torch has it: one float32 without dimensions.
ExtraState stepCount(const std::string& parameter, double count) {
  const auto narrow = static_cast<float>(count);
  std::vector<uint8_t> bytes(sizeof(narrow));
  std::memcpy(bytes.data(), &narrow, sizeof(narrow));
  return {.name = stepCountName(parameter),
          .bytes = std::move(bytes),
          .dtype = ir::DType::kF32,
          .sizes = std::vector<int64_t>{}};
}

StateFileLayout modelLayout(const PlanSource& source, const std::string& folder,
                            const TrainingProgress& progress) {
  StateFileLayout layout{.path = folder + "/" + kModelFile};
  layout.metadata = {
      {"format", "pt"}, {kChecksumKey, ""}, {kModelStepsKey, std::to_string(progress.steps)}};
  for (const ir::StorageId storage : findSavedStorages(source)) {
    if (isModelState(source.graph.storage(storage))) layout.storages.push_back(storage);
  }
  return layout;
}

StateFileLayout optimizerLayout(const PlanSource& source, const std::string& folder,
                                const TrainingProgress& progress) {
  StateFileLayout layout{.path = folder + "/" + kOptimizerFile};
  layout.names = checkpointNames(source.graph);
  layout.metadata = {{kVersionKey, kVersion},
                     {kChecksumKey, ""},
                     {kStepsKey, std::to_string(progress.steps)},
                     {kPositionKey, std::to_string(progress.dataPosition)},
                     {kPlanKey, progress.plan},
                     {kRatesKey, ratesText(progress.learningRates)}};
  for (const auto& [key, note] : progress.notes) layout.metadata[kNotePrefix + key] = note;
  for (const ir::StorageId storage : findSavedStorages(source)) {
    if (!isModelState(source.graph.storage(storage))) layout.storages.push_back(storage);
  }
  for (const auto& [parameter, count] : progress.stepCounts) {
    layout.extra.push_back(stepCount(parameter, count));
  }
  layout.extra.push_back({.name = kGenerator, .bytes = progress.generator});
  return layout;
}

/// What would be refused when it is read is not written.
ir::Error checkCount(const char* what, int64_t count, int64_t most) {
  if (count >= 0 && count <= most) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "found " + std::to_string(count) + " " + what +
                           " for a checkpoint, expected 0 to " + std::to_string(most));
}

template <typename T>
std::optional<T> parseNumber(llvm::StringRef text) {
  T value{};
  const auto end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

}  // namespace

bool holdsCheckpoint(const std::string& folder) {
  return llvm::sys::fs::exists(besideCheckpoint(folder, "/") + kModelFile) ||
         llvm::sys::fs::exists(besideCheckpoint(folder, "/") + kOptimizerFile) ||
         llvm::sys::fs::exists(besideCheckpoint(folder, kPreviousSuffix));
}

ir::Error saveCheckpoint(Executor& executor, const std::string& folder,
                         const TrainingProgress& progress) {
  if (ir::Error error = checkCount("steps", progress.steps, kMostSteps)) return error;
  if (ir::Error error = checkCount("batches", progress.dataPosition, kMostBatches)) return error;
  const PlanSource& source = executor.source();
  ir::Expected<CheckpointWrite> write = CheckpointWrite::begin(folder);
  if (!write) return write.takeError();
  const std::string& partial = write->partial();
  auto model = StateFileWriter::create(source.graph, modelLayout(source, partial, progress));
  if (!model) return model.takeError();
  auto optimizer =
      StateFileWriter::create(source.graph, optimizerLayout(source, partial, progress));
  if (!optimizer) return optimizer.takeError();
  const auto put = [&](ir::StorageId storage, llvm::ArrayRef<uint8_t> bytes) {
    return (model->holds(storage) ? *model : *optimizer).append(storage, bytes);
  };
  if (ir::Error error = drainState(executor, put)) return error;
  if (ir::Error error = model->commit()) return error;
  if (ir::Error error = optimizer->commit()) return error;
  return write->commit();
}

ir::Error Checkpoint::badFile(const std::string& what, ir::ErrorCode code) const {
  return ir::makeError(ir::PlanError(code, what).at({.file = folder_ + "/" + kOptimizerFile}));
}

ir::Error Checkpoint::badGenerator(const std::string& what) const {
  return badFile(std::string("tensor '") + kGenerator + "': " + what);
}

ir::Expected<Checkpoint> Checkpoint::open(const std::string& folder) {
  const std::string previous = besideCheckpoint(folder, kPreviousSuffix);
  const bool killedBetween =
      !llvm::sys::fs::exists(besideCheckpoint(folder, "")) && llvm::sys::fs::exists(previous);
  const std::string& place = killedBetween ? previous : folder;
  if (!holdsCheckpoint(folder)) {
    return ir::makeError(
        ir::PlanError(ir::ErrorCode::kIo, std::string("holds no checkpoint, expected a folder "
                                                      "with ") +
                                              kModelFile + " and " + kOptimizerFile)
            .at({.file = folder}));
  }
  ir::Expected<StateFiles> files =
      StateFiles::open({place + "/" + kModelFile, place + "/" + kOptimizerFile});
  if (!files) return files.takeError();
  Checkpoint checkpoint(place, std::move(*files));
  if (ir::Error error = checkpoint.readProgress()) return error;
  return checkpoint;
}

ir::Expected<int64_t> Checkpoint::readNumber(const std::string& key, int64_t most) const {
  const auto found = files_.metadata().find(key);
  if (found == files_.metadata().end()) return badFile("no metadata '" + key + "'");
  const std::optional<int64_t> number = parseNumber<int64_t>(found->second);
  if (number && *number >= 0 && *number <= most) return *number;
  return badFile("metadata '" + key + "' is '" + found->second + "', expected a number from 0 to " +
                 std::to_string(most));
}

ir::Error Checkpoint::readRates() {
  const auto found = files_.metadata().find(kRatesKey);
  if (found == files_.metadata().end())
    return badFile(std::string("no metadata '") + kRatesKey + "'");
  llvm::SmallVector<llvm::StringRef> words;
  llvm::StringRef(found->second).split(words, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (const llvm::StringRef word : words) {
    const std::optional<double> rate = parseNumber<double>(word);
    if (!rate || !(*rate >= 0 && *rate <= kMostRate)) {
      return badFile("metadata '" + std::string(kRatesKey) + "' has '" + word.str() +
                     "', expected numbers from 0 to 1e9");
    }
    progress_.learningRates.push_back(*rate);
  }
  return ir::success();
}

ir::Error Checkpoint::checkRates(size_t groups) const {
  if (progress_.learningRates.size() == groups) return ir::success();
  return badFile("metadata '" + std::string(kRatesKey) + "' has " +
                 std::to_string(progress_.learningRates.size()) + " numbers, expected " +
                 std::to_string(groups) + ", one for each parameter group");
}

/// "state.<parameter>.step", when it is one float32: counts that are tensors of the step are read
/// with the other state.
ir::Error Checkpoint::readCounts() {
  for (const std::string& name : files_.names()) {
    llvm::StringRef rest(name);
    if (!rest.consume_front("state.") || !rest.consume_back(".step")) continue;
    const SafetensorsEntry& entry = *files_.find(name);
    if (entry.dtype != ir::DType::kF32 || !entry.sizes.empty()) continue;
    std::array<uint8_t, sizeof(float)> bytes{};
    if (ir::Error error = files_.readEntry(entry, bytes)) return error;
    float count = 0;
    std::memcpy(&count, bytes.data(), sizeof(count));
    // NaN is in no range.
    const bool isCount = count >= 0 && count <= static_cast<float>(kMostSteps);
    if (!isCount || count != std::floor(count)) {
      return badFile("tensor '" + name + "' is " + exactText(count) +
                     ", expected a whole number of steps from 0 to " + std::to_string(kMostSteps));
    }
    progress_.stepCounts[rest.str()] = count;
  }
  return ir::success();
}

ir::Error Checkpoint::readProgress() {
  const auto version = files_.metadata().find(kVersionKey);
  if (version == files_.metadata().end() || !ir::startsWith(version->second, "1.")) {
    return badFile(std::string("found no metadata '") + kVersionKey + "' of version 1, expected " +
                   kVersion);
  }
  ir::Expected<int64_t> steps = readNumber(kStepsKey, kMostSteps);
  if (!steps) return steps.takeError();
  ir::Expected<int64_t> modelSteps = readNumber(kModelStepsKey, kMostSteps);
  if (!modelSteps) return modelSteps.takeError();
  if (*steps != *modelSteps) {
    return ir::makeError(ir::ErrorCode::kPlanMismatch,
                         folder_ + ": the model is of step " + std::to_string(*modelSteps) +
                             ", the optimizer of step " + std::to_string(*steps));
  }
  ir::Expected<int64_t> position = readNumber(kPositionKey, kMostBatches);
  if (!position) return position.takeError();
  progress_.steps = *steps;
  progress_.dataPosition = *position;
  const auto plan = files_.metadata().find(kPlanKey);
  if (plan != files_.metadata().end()) progress_.plan = plan->second;
  for (const auto& [key, note] : files_.metadata()) {
    llvm::StringRef name(key);
    if (name.consume_front(kNotePrefix)) progress_.notes.emplace(name.str(), note);
  }
  if (ir::Error error = readRates()) return error;
  if (ir::Error error = readCounts()) return error;
  return readGenerator();
}

ir::Error Checkpoint::readGenerator() {
  const SafetensorsEntry* generator = files_.find(kGenerator);
  if (generator == nullptr) return badFile(std::string("no tensor '") + kGenerator + "'");
  if (generator->dtype != ir::DType::kU8 || generator->sizes.size() != 1) {
    return badGenerator("found " + generator->dtypeText + " " + ir::listText(generator->sizes) +
                        ", expected U8 [n], a generator's state");
  }
  progress_.generator.resize(static_cast<size_t>(generator->bytes.end - generator->bytes.begin));
  return files_.readEntry(*generator, progress_.generator);
}

ir::Error Checkpoint::load(Executor& executor) const {
  const ir::Graph& graph = executor.source().graph;
  const std::vector<ir::StorageId> saved = findSavedStorages(executor.source());
  StateFileOptions options;
  options.names = checkpointNames(graph);
  options.wants = [&](const ir::Storage& storage) {
    const ir::StorageId id(static_cast<size_t>(&storage - graph.storages().data()));
    return std::binary_search(saved.begin(), saved.end(), id);
  };
  options.known.insert(kGenerator);
  for (const auto& [parameter, count] : progress_.stepCounts) {
    options.known.insert(stepCountName(parameter));
  }
  if (ir::Error error = files_.check(graph, options)) {
    ir::PlanError problem = ir::takePayload(std::move(error));
    return ir::makeError(problem.at({.file = folder_}));
  }
  const auto read = [&](ir::StorageId storage, llvm::MutableArrayRef<uint8_t> bytes) {
    return files_.read(graph, storage, options, bytes);
  };
  return loadState(executor, read);
}

}  // namespace stowage::runtime
