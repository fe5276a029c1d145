// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2/pt2_import.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>

#include <optional>
#include <utility>

#include "ir/base/affix.h"
#include "ir/graph/check_graph.h"
#include "runtime/capture/pt2/pt2_finish.h"
#include "runtime/capture/pt2/pt2_graph.h"
#include "runtime/capture/pt2/pt2_json.h"
#include "runtime/capture/pt2/pt2_phases.h"
#include "runtime/capture/pt2/pt2_roles.h"
#include "runtime/capture/pt2/pt2_weights.h"
#include "runtime/capture/pt2/pt2_zip.h"
#include "runtime/executor/host_state.h"
#include "runtime/files/input_file.h"
#include "runtime/torch/torch_version.h"

namespace stowage::runtime {
namespace {

/// The archive's root folder and its one program.
struct ArchivePlaces {
  std::string root;  // "" or ends with '/'
  llvm::StringRef program;
};

class Importer {
 public:
  Importer(const std::string& path, const ir::Target& target, const ImportOptions& options)
      : path_(path), target_(target), options_(options) {}

  ir::Expected<ImportedStep> import() {
    ir::Expected<Pt2Program> program = readProgram();
    if (!program) return program.takeError();
    ir::Expected<std::string> device = findDevice(*program);
    if (!device) return device.takeError();
    if (ir::Error error = readSideFile()) return error;
    ir::Expected<std::string> fingerprint = archiveFingerprint(path_);
    if (!fingerprint) return fingerprint.takeError();
    ir::Expected<Pt2Graph> draft = makePt2Graph(*program, ops_, target_, stepName(),
                                                provenance(*program, *device, *fingerprint));
    if (!draft) return inArchive(draft.takeError());
    const Pt2Losses losses = findLosses(*program, *draft);
    const std::vector<bool> forward = findAncestors(draft->graph, losses.loss);
    const Pt2RoleFacts facts{.program = *program, .draft = *draft, .forward = forward};
    ir::Expected<std::vector<Pt2InputRole>> roles = findRoles(facts);
    if (!roles) return roles.takeError();
    ImportedStep step = finishPt2Step(facts, *roles, losses);
    if (ir::Error error = ir::checkGraph(step.graph)) return inArchive(std::move(error));
    if (ir::Error error = checkHostState(step.graph)) return inArchive(std::move(error));
    return step;
  }

 private:
  ir::Error inFile(ir::ErrorCode code, const std::string& message) const {
    return ir::makeError(ir::PlanError(code, message).at({.file = path_}));
  }
  /// The error, with the archive as its place.
  ir::Error inArchive(ir::Error error) const {
    ir::PlanError payload = ir::takePayload(std::move(error));
    payload.at({.file = place_});
    return ir::makeError(std::move(payload));
  }

  ir::Expected<Pt2Program> readProgram() {
    ir::Expected<ZipArchive> archive = ZipArchive::open(path_);
    if (!archive) return archive.takeError();
    ir::Expected<ArchivePlaces> places = findPlaces(*archive);
    if (!places) return places.takeError();
    place_ = path_ + ":" + places->program.str();
    if (ir::Error error = checkMark(*archive, places->root + "archive_format", "pt2")) return error;
    if (ir::Error error = checkMark(*archive, places->root + "archive_version", "0")) return error;
    ir::Expected<llvm::StringRef> text = archive->read(places->program);
    if (!text) return text.takeError();
    return readPt2Program(*text, place_);
  }

  ir::Expected<ArchivePlaces> findPlaces(const ZipArchive& archive) const {
    ArchivePlaces places;
    for (const ZipEntry& entry : archive.entries()) {
      llvm::SmallVector<llvm::StringRef, 4> parts;
      entry.name.split(parts, '/');
      const size_t folders = parts.size() - 1;
      const bool isProgram = (folders == 1 || folders == 2) && parts[folders - 1] == "models" &&
                             ir::endsWith(parts[folders], ".json");
      if (!isProgram) continue;
      if (!places.program.empty()) {
        return inFile(ir::ErrorCode::kParse, "found programs '" + places.program.str() + "' and '" +
                                                 entry.name.str() + "', expected one");
      }
      places = {.root = folders == 2 ? parts[0].str() + "/" : "", .program = entry.name};
    }
    if (!places.program.empty()) return places;
    return inFile(ir::ErrorCode::kParse,
                  "found no program, expected models/….json: is this an archive of torch.export?");
  }

  ir::Error checkMark(const ZipArchive& archive, const std::string& name,
                      const std::string& expected) const {
    ir::Expected<llvm::StringRef> found = archive.read(name);
    if (!found) return found.takeError();
    if (found->trim() == expected) return ir::success();
    return inFile(ir::ErrorCode::kUnsupported, "entry '" + name + "': found '" +
                                                   found->trim().take_front(20).str() +
                                                   "', expected '" + expected + "'");
  }

  /// One device, and the host for small things.
  ir::Expected<std::string> findDevice(const Pt2Program& program) const {
    const std::string wanted = ir::deviceKindName(target_.device);
    std::string device = "cpu";
    for (const Pt2Tensor& tensor : program.tensors) {
      if (tensor.device == "cpu") continue;
      device = "cuda";
      if (tensor.device == "cuda:0") continue;
      return inArchive(ir::makeError(
          ir::ErrorCode::kUnsupported,
          "tensor '" + tensor.name + "' is on " + tensor.device + ", expected all on cuda:0"));
    }
    if (device == wanted) return device;
    return inArchive(
        ir::makeError(ir::ErrorCode::kInvalidArgument,
                      "this step was traced for " + device + ", expected " + wanted +
                          ", as the target is; choose a target of that kind (--device " + device +
                          ", or --target)"));
  }

  ir::Provenance provenance(const Pt2Program& program, const std::string& device,
                            const std::string& fingerprint) const {
    // "2.11.0+cu130"
    const bool isSame = llvm::StringRef(program.torchVersion).split('+').first == torchVersion();
    const std::string by = isSame ? "" : " of torch " + program.torchVersion;
    return {.producer = "torch.export" + by + ", torch " + torchVersion(),
            .recipe = llvm::sys::path::filename(path_).str() + " fingerprint=" + fingerprint,
            .device = device,
            .target = target_.profile,
            .stepsCaptured = 1,
            .deterministic = target_.deterministic};
  }

  ir::Expected<std::vector<Pt2InputRole>> findRoles(const Pt2RoleFacts& facts) const {
    if (!side_) return rolesFromData(facts);
    return rolesFromSideFile(facts, *side_, sideFile_);
  }

  /// Leaves `side_` empty when there is no such file and none was asked for.
  ir::Error readSideFile() {
    sideFile_ = options_.sideFile;
    if (sideFile_.empty()) {
      llvm::SmallString<128> beside(path_);
      llvm::sys::path::replace_extension(beside, ".json");
      if (beside == path_ || !llvm::sys::fs::exists(beside)) return ir::success();
      sideFile_ = beside.str().str();
    }
    ir::Expected<std::string> text = readInput(sideFile_);
    if (!text) return text.takeError();
    ir::Expected<Pt2SideFile> side = readPt2SideFile(*text, sideFile_);
    if (!side) return side.takeError();
    side_ = std::move(*side);
    return ir::success();
  }

  std::string stepName() const {
    const std::string stem = llvm::sys::path::stem(path_).str();
    return pt2Identifier(side_ && !side_->name.empty() ? side_->name : stem);
  }

  const std::string& path_;
  const ir::Target& target_;
  const ImportOptions& options_;
  std::string place_;  // file and entry, as errors name them
  std::string sideFile_;
  std::optional<Pt2SideFile> side_;
  Pt2Ops ops_;
};

}  // namespace

ir::Expected<ImportedStep> importTrainingStep(const std::string& path, const ir::Target& target,
                                              const ImportOptions& options) {
  return Importer(path, target, options).import();
}

}  // namespace stowage::runtime
