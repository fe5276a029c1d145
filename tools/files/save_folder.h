// SPDX-License-Identifier: Apache-2.0
//
// The folder of --save before a training begins: that this training may write there, that nobody
// else does meanwhile, that files can be made and renamed there, and that a checkpoint has room.
// What can be known before the first step is refused before it. Not here: writing a checkpoint
// (runtime/checkpoint/checkpoint.h).
#ifndef STOWAGE_TOOLS_FILES_SAVE_FOLDER_H_
#define STOWAGE_TOOLS_FILES_SAVE_FOLDER_H_

#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/schedule.h"
#include "runtime/checkpoint/checkpoint_folder.h"

namespace stowage::tools {

struct SaveRequest {
  std::string folder;               // "": nothing is saved
  std::string resume;               // the checkpoint that the training goes on from, or ""
  std::vector<std::string> inputs;  // files that the command reads
  bool replace = false;             // -f: the checkpoint of another training goes
};

/// The claim of a folder that can be written; nothing where nothing is saved. Errors:
/// kInvalidArgument for a folder that is not to be replaced, or that another process saves in;
/// kEnvironment for one that cannot be written.
ir::Expected<std::optional<runtime::CheckpointClaim>> claimSaveFolder(const SaveRequest& request);

/// Room for one more checkpoint of this training's state. Errors: kEnvironment.
ir::Error checkRoomFor(const std::string& folder, const ir::Graph& graph,
                       const ir::Schedule& schedule);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_FILES_SAVE_FOLDER_H_
