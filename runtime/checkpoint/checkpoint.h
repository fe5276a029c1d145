// SPDX-License-Identifier: Apache-2.0
//
// A training between two steps, as a folder that appears whole or not at all:
//   model.safetensors      parameters and buffers by qualified name: a model file like any other
//   optimizer.safetensors  optimizer state in torch's layout, host step counts, the generator's
//                          state; how far the training is, and under which plan, as metadata
// Written beside the target and renamed, so that a process killed at any point leaves the
// checkpoint before it or the new one; `open` finds either. Bytes do not depend on the plan: a
// training may go on under another budget. Not here: the objects of the host (optimizer,
// schedulers), which runtime/runner/runner.* brings along.
#ifndef STOWAGE_RUNTIME_CHECKPOINT_CHECKPOINT_H_
#define STOWAGE_RUNTIME_CHECKPOINT_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "runtime/checkpoint/state_io.h"
#include "runtime/executor/executor.h"
#include "runtime/ranks/training_ranks.h"

namespace stowage::runtime {

/// A checkpoint that says more is damaged. Schedulers count steps in 32 bits.
inline constexpr int64_t kMostSteps = INT32_MAX;
inline constexpr int64_t kMostBatches = int64_t{1} << 40;

struct TrainingProgress {
  int64_t steps = 0;                         // done since the training began
  int64_t dataPosition = 0;                  // batches used since then
  std::string plan;                          // fingerprint of the schedule
  std::vector<double> learningRates;         // by parameter group
  std::map<std::string, double> stepCounts;  // host numbers of the optimizer, by parameter
  std::vector<uint8_t> generator;
  std::map<std::string, std::string> notes;  // of whoever trains; not interpreted
};

/// Waits for the last step. With ranks, all of them call it, rank 0 writes, and it returns when the
/// files are there; shards are put together one by one. An existing checkpoint of that name is
/// replaced. Errors: kIo; kInvalidArgument for a folder that holds anything else, or that another
/// process writes, and for counts above the most.
ir::Error saveCheckpoint(Executor& executor, const std::string& folder,
                         const TrainingProgress& progress, const TrainingRanks* ranks = nullptr);

/// Whether there is a checkpoint of that name, or what a process killed while it replaced one left.
bool holdsCheckpoint(const std::string& folder);

class Checkpoint {
 public:
  /// Errors: kIo; kParse with the file for one that is no checkpoint, or whose counts are none;
  /// kPlanMismatch when the files are of different steps.
  static ir::Expected<Checkpoint> open(const std::string& folder);
  const TrainingProgress& progress() const { return progress_; }
  /// Of all metadata, checksums of the tensors among them: another checkpoint has another one.
  uint64_t digest() const;
  /// Checks everything, then fills the executor's state. Errors: kPlanMismatch with a note per
  /// missing, extra or other tensor, before anything is changed; kIo.
  /// With ranks, each takes its shards, and what it had for itself where the checkpoint is of one
  /// with as many ranks; else what rank 0 had.
  ir::Error load(Executor& executor, const TrainingRanks* ranks = nullptr) const;
  /// The generator's state of a rank; nothing where the training had no such rank.
  ir::Expected<std::optional<std::vector<uint8_t>>> generatorOf(int32_t rank) const;
  /// What is wrong with the host numbers or the generator's state, as a refusal of their file.
  ir::Error badFile(const std::string& what, ir::ErrorCode code = ir::ErrorCode::kParse) const;
  ir::Error badGenerator(const std::string& what) const;
  /// One learning rate for each of `groups` parameter groups. Errors: kParse.
  ir::Error checkRates(size_t groups) const;

 private:
  Checkpoint(std::string folder, StateFiles files)
      : folder_(std::move(folder)), files_(std::move(files)) {}
  ir::Error readProgress();
  ir::Expected<int64_t> readNumber(const std::string& key, int64_t most) const;
  ir::Error readRates();
  ir::Error readCounts();
  ir::Error readGenerator();
  ir::Error readOwn(const SafetensorsEntry& entry, llvm::MutableArrayRef<uint8_t> bytes) const;

  std::string folder_;
  StateFiles files_;
  TrainingProgress progress_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CHECKPOINT_CHECKPOINT_H_
