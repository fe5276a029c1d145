// SPDX-License-Identifier: Apache-2.0
//
// The folder of a checkpoint: what may be removed for it, who writes it, and how a new one takes
// the place of an old one. Beside `name` lie, for a while, `name.stowage-partial` (being written),
// `name.stowage-previous` (being replaced) and `name.stowage-lock` (claimed by a process): names
// that nobody else gives. A link in their place is refused. Only files that a
// checkpoint consists of are ever removed, one by one, and only where their first bytes say that
// they are ours; a folder that holds anything else is refused. Not here: what is in the files
// (checkpoint.h).
#ifndef STOWAGE_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H_
#define STOWAGE_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H_

#include <string>

#include "ir/base/error.h"
#include "runtime/files/safetensors.h"

namespace stowage::runtime {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
/// Behind the name of a checkpoint's folder.
inline constexpr const char* kPartialSuffix = ".stowage-partial";
inline constexpr const char* kPreviousSuffix = ".stowage-previous";
inline constexpr const char* kLockSuffix = ".stowage-lock";
/// Metadata of the two files; the first that they have, but for the format's own.
inline constexpr const char* kModelStepsKey = "stowage.model_steps";
inline constexpr const char* kVersionKey = "stowage.checkpoint";

/// Names beside `folder`, without a separator at its end; where a link leads to, so that it stays.
std::string besideCheckpoint(const std::string& folder, const char* suffix);

/// Can a checkpoint be written there? Errors: kInvalidArgument for a folder that holds anything but
/// a checkpoint or cannot be renamed ("/", ".", a mount point), kIo for one that cannot be read.
ir::Error checkCheckpointFolder(const std::string& folder);

/// A checkpoint being written. Destroyed before commit, it leaves nothing.
class CheckpointWrite {
 public:
  /// Errors: as checkCheckpointFolder; kInvalidArgument when another process writes it just now.
  static ir::Expected<CheckpointWrite> begin(const std::string& folder);
  CheckpointWrite(CheckpointWrite&&) noexcept = default;
  ~CheckpointWrite();
  /// Where the files go.
  const std::string& partial() const { return partial_; }
  /// Puts them in the place of `folder`. Killed between the two renames, the old checkpoint is
  /// there as `.stowage-previous`.
  ir::Error commit();

 private:
  CheckpointWrite(std::string folder, FileHandle lock);

  std::string folder_;
  std::string partial_;
  FileHandle lock_;  // of the folder being written; none: done
};

/// A process's word that it alone saves there, until it ends or the claim is destroyed.
class CheckpointClaim {
 public:
  /// Errors: kInvalidArgument, naming the process that has it.
  static ir::Expected<CheckpointClaim> take(const std::string& folder);
  CheckpointClaim(CheckpointClaim&&) noexcept = default;
  ~CheckpointClaim();

 private:
  CheckpointClaim(std::string path, FileHandle lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  FileHandle lock_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H_
