// SPDX-License-Identifier: Apache-2.0
//
// Writing a checkpoint.
#include <llvm/ADT/ArrayRef.h>

#include <cstring>
#include <utility>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_keys.h"
#include "runtime/checkpoint/rank_states.h"
#include "runtime/checkpoint/state_names.h"
#include "runtime/executor/boundary_state.h"
#include "runtime/ranks/shard_bytes.h"

namespace stowage::runtime {

namespace {

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
  layout.metadata = {{kVersionKey, kCheckpointVersion},
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
  layout.extra.push_back({.name = kGeneratorName, .bytes = progress.generator});
  return layout;
}

/// What would be refused when it is read is not written.
ir::Error checkCount(const char* what, int64_t count, int64_t most) {
  if (count >= 0 && count <= most) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "found " + std::to_string(count) + " " + what +
                           " for a checkpoint, expected 0 to " + std::to_string(most));
}

/// What the ranks of a training have apart, on its way into rank 0's checkpoint.
class RankStates {
 public:
  RankStates(const ir::Graph& graph, const TrainingRanks* ranks)
      : graph_(graph), ranks_(ranks), isOwn_(findRankStates(graph)) {}

  /// Places for what the other ranks have.
  void addPlaces(const PlanSource& source, size_t generatorBytes, StateFileLayout& layout) const {
    for (int32_t rank = 1; rank < count(); ++rank) {
      const auto add = [&](const std::string& name, size_t bytes) {
        layout.extra.push_back(
            {.name = rankStateName(rank, name), .bytes = std::vector<uint8_t>(bytes)});
      };
      add(kGeneratorName, generatorBytes);
      for (const ir::StorageId storage : findSavedStorages(source)) {
        if (!isOwn_[storage.index()]) continue;
        const ir::Storage& info = graph_.storage(storage);
        add(info.name, static_cast<size_t>(info.bytes.value()));
      }
    }
  }

  /// What goes into the checkpoint for these bytes of this rank; `optimizer`: on rank 0.
  ir::Expected<llvm::ArrayRef<uint8_t>> bytesOf(ir::StorageId storage, llvm::ArrayRef<uint8_t> own,
                                                StateFileWriter* optimizer) {
    const ir::Storage& info = graph_.storage(storage);
    if (isOwn_[storage.index()]) {
      if (ir::Error error = share(info.name, own, optimizer)) return error;
    }
    if (!info.shardOf) return own;
    whole_.resize(static_cast<size_t>(ir::wholeBytes(info).value()));
    if (ir::Error error = joinShards(ranks_->between, own, whole_)) return error;
    return llvm::ArrayRef<uint8_t>(whole_);
  }

  ir::Error share(const std::string& name, llvm::ArrayRef<uint8_t> own,
                  StateFileWriter* optimizer) const {
    if (count() == 1) return ir::success();
    ir::Expected<std::vector<std::vector<uint8_t>>> each = gatherEach(ranks_->between, own);
    if (!each) return each.takeError();
    for (int32_t rank = 1; optimizer != nullptr && rank < count(); ++rank) {
      optimizer->putExtra(rankStateName(rank, name), std::move((*each)[static_cast<size_t>(rank)]));
    }
    return ir::success();
  }

 private:
  int32_t count() const { return ranks_ == nullptr ? 1 : ranks_->count(); }

  const ir::Graph& graph_;
  const TrainingRanks* ranks_;
  std::vector<bool> isOwn_;
  std::vector<uint8_t> whole_;
};

/// A rank behind the first: it writes nothing, and gives what it has to rank 0.
ir::Error giveToFirstRank(Executor& executor, const TrainingProgress& progress,
                          RankStates& states) {
  const auto give = [&](ir::StorageId storage, llvm::ArrayRef<uint8_t> bytes) {
    return states.bytesOf(storage, bytes, nullptr).takeError();
  };
  if (ir::Error error = drainState(executor, give)) return error;
  return states.share(kGeneratorName, progress.generator, nullptr);
}

ir::Error writeCheckpoint(Executor& executor, const std::string& folder,
                          const TrainingProgress& progress, RankStates& states) {
  const PlanSource& source = executor.source();
  ir::Expected<CheckpointWrite> write = CheckpointWrite::begin(folder);
  if (!write) return write.takeError();
  const std::string& partial = write->partial();
  auto model = StateFileWriter::create(source.graph, modelLayout(source, partial, progress));
  if (!model) return model.takeError();
  StateFileLayout layout = optimizerLayout(source, partial, progress);
  states.addPlaces(source, progress.generator.size(), layout);
  auto optimizer = StateFileWriter::create(source.graph, std::move(layout));
  if (!optimizer) return optimizer.takeError();
  const auto put = [&](ir::StorageId storage, llvm::ArrayRef<uint8_t> bytes) -> ir::Error {
    ir::Expected<llvm::ArrayRef<uint8_t>> saved = states.bytesOf(storage, bytes, &*optimizer);
    if (!saved) return saved.takeError();
    return (model->holds(storage) ? *model : *optimizer).append(storage, *saved);
  };
  if (ir::Error error = drainState(executor, put)) return error;
  if (ir::Error error = states.share(kGeneratorName, progress.generator, &*optimizer)) return error;
  if (ir::Error error = model->commit()) return error;
  if (ir::Error error = optimizer->commit()) return error;
  return write->commit();
}

}  // namespace

ir::Error saveCheckpoint(Executor& executor, const std::string& folder,
                         const TrainingProgress& progress, const TrainingRanks* ranks) {
  if (ir::Error error = checkCount("steps", progress.steps, kMostSteps)) return error;
  if (ir::Error error = checkCount("batches", progress.dataPosition, kMostBatches)) return error;
  RankStates states(executor.source().graph, ranks);
  ir::Error error = ranks == nullptr || ranks->rank() == 0
                        ? writeCheckpoint(executor, folder, progress, states)
                        : giveToFirstRank(executor, progress, states);
  if (error || ranks == nullptr) return error;
  // Nobody goes on before it is there.
  return ranks->between.agree("the step of the checkpoint", static_cast<uint64_t>(progress.steps));
}

}  // namespace stowage::runtime
