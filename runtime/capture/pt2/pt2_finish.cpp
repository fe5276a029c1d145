// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2/pt2_finish.h"

#include <ATen/core/jit_type.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringMap.h>

#include <utility>

#include "runtime/capture/graph/held_state.h"
#include "runtime/capture/host_state/module_tensors.h"
#include "runtime/capture/pt2/pt2_names.h"
#include "runtime/capture/pt2/pt2_phases.h"

namespace stowage::runtime {
namespace {

bool isFloatingPoint(ir::DType dtype) {
  return dtype == ir::DType::kF64 || dtype == ir::DType::kF32 || dtype == ir::DType::kF16 ||
         dtype == ir::DType::kBF16;
}

bool isUpdated(ir::Role role) {
  return role == ir::Role::kParameter || role == ir::Role::kMaster || role == ir::Role::kState ||
         role == ir::Role::kStepCounter;
}

/// "aten.gelu.default" -> "gelu".
std::string shortOpName(const std::string& op) {
  const size_t first = op.find('.');
  return op.substr(first + 1, op.rfind('.') - first - 1);
}

/// Hands out names, each once: one asked for again gets a number.
class UniqueNames {
 public:
  std::string claim(const std::string& wanted) {
    if (taken_.try_emplace(wanted, 1).second) return wanted;
    std::string candidate;
    do {
      candidate = wanted + "." + std::to_string(taken_[wanted]++);
    } while (!taken_.try_emplace(candidate, 1).second);
    return candidate;
  }

 private:
  llvm::StringMap<int> taken_;
};

class Finisher {
 public:
  Finisher(const Pt2RoleFacts& facts, const std::vector<Pt2InputRole>& roles,
           const Pt2Losses& losses)
      : facts_(facts),
        draft_(facts.draft.graph),
        roles_(roles),
        losses_(losses),
        builder_(draft_),
        roleOf_(draft_.storages().size(), nullptr) {
    for (size_t i = 0; i < roles.size(); ++i) {
      const ir::ValueId value = facts.draft.inputs[i];
      if (value.isValid()) roleOf_[draft_.value(value).storage.index()] = &roles_[i];
    }
  }

  ImportedStep finish() {
    phases_ = findPhases(draft_, phaseFacts());
    scopes_ = findPaths();
    nameInputs();
    nameGradients();
    markOutputs();
    nameOthers();
    addNodes();
    ImportedStep step{.graph = holdStateBetweenSteps(std::move(builder_).finish()),
                      .arguments = facts_.draft.inputs};
    for (size_t i = 0; i < roles_.size(); ++i) {
      const ir::ValueId value = facts_.draft.inputs[i];
      if (!value.isValid() || roles_[i].role != ir::Role::kInput) continue;
      step.inputs.push_back(value);
      if (roles_[i].learningRate) step.learningRates.push_back(value);
    }
    for (const ir::ValueId value : facts_.draft.outputs) {
      if (!isDelivered(value)) continue;
      step.reports.push_back(value);
      if (llvm::is_contained(losses_.loss, value)) step.loss = value;
    }
    step.frozenScalars = findFrozenScalars(step.graph);
    return step;
  }

 private:
  PhaseFacts phaseFacts() const {
    PhaseFacts facts{.forward = facts_.forward, .gradients = losses_.gradients};
    for (const Pt2InputRole* role : roleOf_) {
      const bool updated = role != nullptr && isUpdated(role->role);
      facts.updated.push_back(updated);
      facts.rates.push_back(role != nullptr && role->learningRate);
      facts.settings.push_back(role != nullptr &&
                               (role->learningRate || role->role == ir::Role::kState ||
                                role->role == ir::Role::kStepCounter));
    }
    return facts;
  }

  /// The archive's own module paths where it has any.
  std::vector<std::string> findPaths() const {
    const bool hasPaths = llvm::any_of(
        facts_.program.nodes, [](const Pt2Node& node) { return !node.modulePath.empty(); });
    if (hasPaths) {
      std::vector<std::string> paths;
      for (const size_t source : facts_.draft.sources) {
        paths.push_back(facts_.program.nodes[source].modulePath);
      }
      return paths;
    }
    std::vector<std::string> moduleOf;
    for (const Pt2InputRole* role : roleOf_) {
      const bool named =
          role != nullptr && (role->role == ir::Role::kParameter ||
                              role->role == ir::Role::kFrozen || role->role == ir::Role::kBuffer);
      moduleOf.push_back(named ? modulePathOf(role->name) : "");
    }
    return findScopes(draft_, phases_, moduleOf);
  }

  void nameInputs() {
    for (size_t i = 0; i < roles_.size(); ++i) {
      const ir::ValueId value = facts_.draft.inputs[i];
      if (!value.isValid()) continue;
      ir::Storage& storage = builder_.storage(draft_.value(value).storage);
      storage.role = roles_[i].role;
      storage.persistent = ir::isPersistentByDefault(storage.role);
      storage.name = storageNames_.claim(roles_[i].name);
      builder_.value(value).name = valueNames_.claim(pt2Identifier(storage.name));
    }
  }

  void nameGradients() {
    std::vector<ir::StorageId> ownerOf(roleOf_.size());
    for (size_t i = 0; i < roleOf_.size(); ++i) {
      if (roleOf_[i] == nullptr) continue;
      ownerOf[i] = roleOf_[i]->role == ir::Role::kParameter ? ir::StorageId(i) : roleOf_[i]->owner;
    }
    gradientOf_ = findGradients(draft_, phases_, ownerOf);
    for (size_t i = 0; i < gradientOf_.size(); ++i) {
      if (!gradientOf_[i].isValid()) continue;
      ir::Storage& storage = builder_.storage(ir::StorageId(i));
      storage.role = ir::Role::kGradient;
      storage.name = storageNames_.claim("grad(" + builder_.storage(gradientOf_[i]).name + ")");
    }
  }

  bool isDelivered(ir::ValueId value) const {
    return draft_.lastVersion(draft_.value(value).storage) > 0;
  }

  void markOutputs() {
    for (const ir::ValueId value : facts_.draft.outputs) {
      if (!isDelivered(value)) continue;
      ir::Storage& storage = builder_.storage(draft_.value(value).storage);
      storage.output = true;
      if (storage.role == ir::Role::kActivation) storage.role = ir::Role::kOutput;
    }
    if (losses_.loss.empty()) return;
    const ir::StorageId loss = draft_.value(losses_.loss.front()).storage;
    if (roleOf_[loss.index()] == nullptr && !gradientOf_[loss.index()].isValid()) {
      builder_.storage(loss).name = storageNames_.claim("loss");
      named_ = loss;
    }
  }

  /// "h.3.mlp/gelu.0", counted per module and op.
  void nameOthers() {
    llvm::StringMap<size_t> counts;
    for (size_t i = 0; i < draft_.nodes().size(); ++i) {
      const std::string op = shortOpName(draft_.nodes()[i].op);
      const std::string stem = scopes_[i].empty() ? op : scopes_[i] + "/" + op;
      for (const ir::Access& access : draft_.accesses(ir::NodeId(i))) {
        const size_t index = access.storage.index();
        const bool made = access.writtenVersion == 1 && roleOf_[index] == nullptr;
        if (!made || gradientOf_[index].isValid() || access.storage == named_) continue;
        builder_.storage(access.storage).name =
            storageNames_.claim(stem + "." + std::to_string(counts[stem]++));
      }
    }
    // Values keep the archive's names, so that a person finds them there.
    for (size_t i = 0; i < draft_.values().size(); ++i) {
      const ir::Value& value = draft_.values()[i];
      if (isInput(ir::ValueId(i))) continue;
      builder_.value(ir::ValueId(i)).name = valueNames_.claim(value.name);
    }
  }

  bool isInput(ir::ValueId value) const {
    const ir::StorageId storage = draft_.value(value).storage;
    return roleOf_[storage.index()] != nullptr &&
           facts_.draft.inputs[inputIndexOf(storage)] == value;
  }
  size_t inputIndexOf(ir::StorageId storage) const {
    return static_cast<size_t>(roleOf_[storage.index()] - roles_.data());
  }

  void addNodes() {
    for (size_t i = 0; i < draft_.nodes().size(); ++i) {
      ir::Node node = draft_.nodes()[i];
      node.phase = phases_[i];
      node.scope = builder_.internScope(scopes_[i]);
      builder_.addNode(std::move(node));
    }
  }

  std::vector<FrozenScalar> findFrozenScalars(const ir::Graph& graph) const {
    std::vector<FrozenScalar> scalars;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const ir::Node& node = graph.nodes()[i];
      if (node.phase != ir::Phase::kOptimizer) continue;
      const Pt2Op& op = *facts_.draft.ops[facts_.draft.sources[i]];
      const auto& arguments = op.facts->schema().arguments();
      for (uint32_t k = 0; k < node.args.size(); ++k) {
        FrozenScalar scalar{.node = ir::NodeId(i), .argument = k, .name = arguments[k].name()};
        addScalars(node.args[k], isNumber(arguments[k]), scalar, scalars);
      }
    }
    return scalars;
  }

  /// Not sizes, dimensions and positions.
  static bool isNumber(const c10::Argument& argument) {
    c10::TypePtr type = argument.real_type();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    if (const auto list = type->cast<c10::ListType>()) type = list->getElementType();
    return type->kind() == c10::TypeKind::FloatType || type->kind() == c10::TypeKind::NumberType;
  }

  static void addScalars(const ir::Argument& argument, bool isNumber, FrozenScalar scalar,
                         std::vector<FrozenScalar>& scalars) {
    const auto add = [&](double value) {
      scalar.value = value;
      scalars.push_back(scalar);
    };
    if (const auto* wrapped = std::get_if<ir::WrappedNumberArg>(&argument)) {
      if (const auto* number = std::get_if<double>(&wrapped->value)) return add(*number);
      if (const auto* integer = std::get_if<int64_t>(&wrapped->value)) {
        return add(static_cast<double>(*integer));
      }
    }
    if (!isNumber) return;
    if (const auto* number = std::get_if<double>(&argument)) add(*number);
    if (const auto* integer = std::get_if<int64_t>(&argument)) add(static_cast<double>(*integer));
    const auto* list = std::get_if<ir::NumberList>(&argument);
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
      scalar.element = static_cast<int32_t>(i);
      if (const auto* number = std::get_if<double>(&(*list)[i])) add(*number);
      if (const auto* integer = std::get_if<int64_t>(&(*list)[i])) {
        add(static_cast<double>(*integer));
      }
    }
  }

  const Pt2RoleFacts& facts_;
  const ir::Graph& draft_;
  const std::vector<Pt2InputRole>& roles_;
  const Pt2Losses& losses_;
  ir::GraphBuilder builder_;
  std::vector<const Pt2InputRole*> roleOf_;  // by storage; null: the step makes it
  std::vector<ir::Phase> phases_;
  std::vector<std::string> scopes_;
  std::vector<ir::StorageId> gradientOf_;
  ir::StorageId named_;
  UniqueNames storageNames_, valueNames_;
};

}  // namespace

Pt2Losses findLosses(const Pt2Program& program, const Pt2Graph& draft) {
  Pt2Losses losses;
  ir::ValueId scalar, first;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const ir::ValueId value = draft.outputs[i];
    const ir::TensorType& type = draft.graph.value(value).type;
    if (program.outputs[i].kind == Pt2Output::Kind::kGradient) {
      losses.gradients.push_back(value);
      continue;
    }
    if (program.outputs[i].kind == Pt2Output::Kind::kLoss && losses.loss.empty()) {
      losses.loss.push_back(value);
    }
    if (!first.isValid()) first = value;
    if (!scalar.isValid() && type.numElements() == 1 && isFloatingPoint(type.dtype)) scalar = value;
  }
  if (!losses.loss.empty() || !first.isValid()) return losses;
  losses.loss.push_back(scalar.isValid() ? scalar : first);
  return losses;
}

ImportedStep finishPt2Step(const Pt2RoleFacts& facts, const std::vector<Pt2InputRole>& roles,
                           const Pt2Losses& losses) {
  return Finisher(facts, roles, losses).finish();
}

}  // namespace stowage::runtime
