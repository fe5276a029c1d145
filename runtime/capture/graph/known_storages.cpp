// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/graph/known_storages.h"

#include <unordered_map>
#include <unordered_set>

#include "runtime/capture/host_state/optimizer_state.h"

namespace stowage::runtime {
namespace {

std::string shortOpName(const std::string& op) {
  const size_t first = op.find('.');
  return op.substr(first + 1, op.rfind('.') - first - 1);
}

class Finder {
 public:
  Finder(const StepTrace& first, const StepTrace& last, const StorageTable& storages)
      : first_(first), last_(last), storages_(storages), written_(last.writtenFrom(0)) {}

  std::vector<KnownStorage> run(const StepTensors& tensors) {
    for (const auto& [name, tensor] : tensors.inputs) {
      add(tensor, {.name = name, .role = ir::Role::kInput});
    }
    for (const ModuleTensor& entry : tensors.module.all()) {
      add(entry.tensor, {.name = entry.name, .role = entry.role, .path = entry.path});
    }
    for (const ModuleTensor& entry : tensors.module.all()) addState(tensors.optimizers, entry);
    for (const auto& [parameter, gradient] : tensors.gradients) {
      const ModuleTensor* entry = tensors.module.find(fakeId(parameter));
      add(gradient,
          {.name = "grad(" + entry->name + ")", .role = ir::Role::kGradient, .path = entry->path});
    }
    addOthers();
    return std::move(known_);
  }

 private:
  void add(const at::Tensor& tensor, KnownStorage known) {
    known.key = fakeId(tensor);
    known.type = irType(shapeOf(tensor));
    add(std::move(known));
  }

  void add(KnownStorage known) {
    if (storages_.find(known.key) == nullptr || !seen_.insert(known.key).second) return;
    const bool isFromBefore = storages_.isReal(known.key) || known.key < last_.firstId;
    known.persistent = known.role != ir::Role::kInput && isFromBefore;
    if (known.role == ir::Role::kParameter && !written_.contains(known.key)) {
      known.role = ir::Role::kFrozen;
    }
    known_.push_back(std::move(known));
  }

  void addState(const OptimizerList& optimizers, const ModuleTensor& entry) {
    if (entry.role != ir::Role::kParameter) return;
    forEachStateTensor(optimizers, entry.tensor,
                       [&](llvm::StringRef function, ir::Role role, const at::Tensor& tensor) {
                         add(tensor, {.name = (function + "(" + entry.name + ")").str(),
                                      .role = role,
                                      .path = entry.path});
                       });
  }

  /// Storages of the last step that neither module nor optimizer names and that it did not make.
  void addOthers() {
    for (size_t i = 0; i < last_.tensors.size(); ++i) {
      const TracedTensor& tensor = last_.tensors[ir::ValueId(i)];
      const StorageFacts& facts = *storages_.find(tensor.storage);
      const bool isOutside = storages_.isReal(tensor.storage);
      if (tensor.storage >= last_.firstId && !isOutside && !facts.handFilled) continue;
      KnownStorage known{.key = tensor.storage, .type = tensor.type};
      if (isOutside || facts.handFilled) {
        known.name = "constant." + std::to_string(constants_++);
        known.role = written_.contains(tensor.storage) ? ir::Role::kBuffer : ir::Role::kConstant;
      } else {
        nameByMaker(known);
      }
      addOther(std::move(known), facts.handFilled);
    }
  }

  void addOther(KnownStorage known, bool handFilled) {
    const size_t count = known_.size();
    add(std::move(known));
    if (known_.size() > count && handFilled) known_.back().persistent = true;
  }

  /// Made by the first step: state when its update made it, else a buffer or constant.
  void nameByMaker(KnownStorage& known) {
    for (size_t i = 0; i < first_.nodes.size(); ++i) {
      const TracedNode& node = first_.nodes[i];
      for (const ir::ValueId result : node.results) {
        if (!result.isValid() || first_.tensors[result].storage != known.key) continue;
        const bool inUpdate = i >= first_.updateBegin;
        const std::string stem = (inUpdate ? "state/" : "kept/") + shortOpName(node.op->name);
        known.name = stem + "." + std::to_string(made_[stem]++);
        const bool isWritten = written_.contains(known.key);
        known.role = inUpdate    ? ir::Role::kState
                     : isWritten ? ir::Role::kBuffer
                                 : ir::Role::kConstant;
        return;
      }
    }
    known.name = "kept." + std::to_string(made_["kept"]++);
    known.role = ir::Role::kBuffer;
  }

  const StepTrace& first_;
  const StepTrace& last_;
  const StorageTable& storages_;
  std::unordered_set<StorageKey> seen_, written_;
  std::vector<KnownStorage> known_;
  std::unordered_map<std::string, int> made_;
  int constants_ = 0;
};

}  // namespace

std::vector<KnownStorage> findKnownStorages(const StepTrace& first, const StepTrace& last,
                                            const StorageTable& storages,
                                            const StepTensors& tensors) {
  return Finder(first, last, storages).run(tensors);
}

}  // namespace stowage::runtime
