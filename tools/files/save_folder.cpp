// SPDX-License-Identifier: Apache-2.0
#include "tools/files/save_folder.h"

#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>

#include <utility>

#include "runtime/checkpoint/checkpoint.h"
#include "tools/files/whole_file.h"

namespace stowage::tools {

namespace {

/// What cannot be written is no input's fault.
ir::Error ofEnvironment(ir::Error error) {
  ir::PlanError found = ir::takePayload(std::move(error));
  if (found.code() != ir::ErrorCode::kIo) return ir::makeError(std::move(found));
  ir::PlanError problem(ir::ErrorCode::kEnvironment, found.text());
  problem.notesOf(found);
  return ir::makeError(std::move(problem).at(found.location()));
}

/// A checkpoint that this training neither made nor goes on from stays, unless -f says otherwise.
ir::Error checkMayReplace(const SaveRequest& request) {
  for (const char* file : {runtime::kModelFile, runtime::kOptimizerFile}) {
    if (ir::Error error = checkIsNoInput(request.folder + "/" + file, request.inputs)) return error;
  }
  const bool goesOn =
      !request.resume.empty() && llvm::sys::fs::equivalent(request.folder, request.resume);
  if (request.replace || goesOn || !runtime::holdsCheckpoint(request.folder)) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       request.folder +
                           ": holds a checkpoint of another training; -f replaces it, "
                           "--resume goes on from it");
}

/// By doing what saving begins with.
ir::Error tryToWrite(const std::string& folder) {
  ir::Expected<runtime::CheckpointWrite> trial = runtime::CheckpointWrite::begin(folder);
  return trial ? ir::success() : trial.takeError();
}

}  // namespace

ir::Expected<std::optional<runtime::CheckpointClaim>> claimSaveFolder(const SaveRequest& request) {
  if (request.folder.empty()) return std::optional<runtime::CheckpointClaim>();
  if (ir::Error error = checkOutputFolder(request.folder)) return error;
  if (ir::Error error = runtime::checkCheckpointFolder(request.folder))
    return ofEnvironment(std::move(error));
  if (ir::Error error = checkMayReplace(request)) return error;
  ir::Expected<runtime::CheckpointClaim> claim = runtime::CheckpointClaim::take(request.folder);
  if (!claim) return ofEnvironment(claim.takeError());
  if (ir::Error error = tryToWrite(request.folder)) return ofEnvironment(std::move(error));
  return std::optional<runtime::CheckpointClaim>(std::move(*claim));
}

ir::Error checkRoomFor(const std::string& folder, const ir::Graph& graph,
                       const ir::Schedule& schedule) {
  if (folder.empty()) return ir::success();
  Bytes needed;
  for (const ir::BoundaryEntry& entry : schedule.boundary) {
    const ir::Storage& storage = graph.storage(entry.storage);
    if (ir::isState(storage) && !entry.at.empty()) needed += ir::wholeBytes(storage);
  }
  const std::string target = runtime::besideCheckpoint(folder, "");
  const llvm::StringRef parent = llvm::sys::path::parent_path(target);
  const llvm::ErrorOr<llvm::sys::fs::space_info> space =
      llvm::sys::fs::disk_space(parent.empty() ? "." : parent);
  // Some file systems do not tell.
  if (!space || space->capacity == 0) return ir::success();
  const Bytes free(static_cast<int64_t>(space->available));
  if (needed <= free) return ir::success();
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       folder + ": a checkpoint takes " + formatBytes(needed) +
                           " beside the one that is there, its file system has " +
                           formatBytes(free) + " free");
}

}  // namespace stowage::tools
