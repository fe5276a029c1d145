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
#include "runtime/checkpoint/checkpoint_keys.h"
#include "runtime/checkpoint/rank_states.h"
#include "runtime/checkpoint/state_names.h"
#include "runtime/executor/boundary_state.h"
#include "runtime/ranks/shard_bytes.h"

namespace stowage::runtime {

namespace {
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

ir::Error Checkpoint::badFile(const std::string& what, ir::ErrorCode code) const {
  return ir::makeError(ir::PlanError(code, what).at({.file = folder_ + "/" + kOptimizerFile}));
}

ir::Error Checkpoint::badGenerator(const std::string& what) const {
  return badFile(std::string("tensor '") + kGeneratorName + "': " + what);
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

uint64_t Checkpoint::digest() const { return files_.digest(); }

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
                   kCheckpointVersion);
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
  const SafetensorsEntry* generator = files_.find(kGeneratorName);
  if (generator == nullptr) return badFile(std::string("no tensor '") + kGeneratorName + "'");
  if (generator->dtype != ir::DType::kU8 || generator->sizes.size() != 1) {
    return badGenerator("found " + generator->dtypeText + " " + ir::listText(generator->sizes) +
                        ", expected U8 [n], a generator's state");
  }
  progress_.generator.resize(static_cast<size_t>(generator->bytes.end - generator->bytes.begin));
  return files_.readEntry(*generator, progress_.generator);
}

ir::Error Checkpoint::readOwn(const SafetensorsEntry& entry,
                              llvm::MutableArrayRef<uint8_t> bytes) const {
  const int64_t found = entry.bytes.end - entry.bytes.begin;
  if (found == static_cast<int64_t>(bytes.size())) return files_.readEntry(entry, bytes);
  return badFile("tensor '" + entry.name + "' has " + std::to_string(found) + " bytes, expected " +
                 std::to_string(bytes.size()));
}

ir::Expected<std::optional<std::vector<uint8_t>>> Checkpoint::generatorOf(int32_t rank) const {
  if (rank == 0) return std::optional(progress_.generator);
  const SafetensorsEntry* entry = files_.find(rankStateName(rank, kGeneratorName));
  if (entry == nullptr) return std::optional<std::vector<uint8_t>>();
  std::vector<uint8_t> bytes(static_cast<size_t>(entry->bytes.end - entry->bytes.begin));
  if (ir::Error error = files_.readEntry(*entry, bytes)) return error;
  return std::optional(std::move(bytes));
}

ir::Error Checkpoint::load(Executor& executor, const TrainingRanks* ranks) const {
  const ir::Graph& graph = executor.source().graph;
  const int32_t rank = ranks == nullptr ? 0 : ranks->rank();
  const std::vector<ir::StorageId> saved = findSavedStorages(executor.source());
  StateFileOptions options;
  options.names = checkpointNames(graph);
  options.wants = [&](const ir::Storage& storage) {
    const ir::StorageId id(static_cast<size_t>(&storage - graph.storages().data()));
    return std::binary_search(saved.begin(), saved.end(), id);
  };
  options.known.insert(kGeneratorName);
  for (const auto& [parameter, count] : progress_.stepCounts) {
    options.known.insert(stepCountName(parameter));
  }
  for (const std::string& name : files_.names()) {
    if (isRankStateName(name)) options.known.insert(name);
  }
  if (ir::Error error = files_.check(graph, options)) {
    ir::PlanError problem = ir::takePayload(std::move(error));
    return ir::makeError(problem.at({.file = folder_}));
  }
  const std::vector<bool> isOwn = findRankStates(graph);
  StorageRoom room(graph);
  const auto read = [&](ir::StorageId storage, llvm::MutableArrayRef<uint8_t> bytes) -> ir::Error {
    const ir::Storage& info = graph.storage(storage);
    const SafetensorsEntry* own =
        isOwn[storage.index()] && rank > 0 ? files_.find(rankStateName(rank, info.name)) : nullptr;
    if (own != nullptr) return readOwn(*own, bytes);
    if (!info.shardOf) return files_.read(graph, storage, options, bytes);
    const llvm::MutableArrayRef<uint8_t> whole = room.ofWhole(storage);
    if (ir::Error error = files_.read(graph, storage, options, whole)) return error;
    cutShard(whole, rank, bytes);
    return ir::success();
  };
  return loadState(executor, read);
}

}  // namespace stowage::runtime
