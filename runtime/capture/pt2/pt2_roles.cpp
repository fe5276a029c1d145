// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2/pt2_roles.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringMap.h>

#include <array>
#include <optional>
#include <utility>

#include "ir/base/affix.h"

namespace stowage::runtime {
namespace {

/// A group of inputs in a side file. `function` is what names are made with: "m(wte.weight)".
struct GroupKind {
  const char* name;
  ir::Role role;
  const char* function;
};
constexpr std::array<GroupKind, 12> kGroups = {{{"train", ir::Role::kParameter, ""},
                                                {"frozen", ir::Role::kFrozen, ""},
                                                {"buffers", ir::Role::kBuffer, ""},
                                                {"master", ir::Role::kMaster, "master"},
                                                {"exp_avg", ir::Role::kState, "m"},
                                                {"exp_avg_sq", ir::Role::kState, "v"},
                                                {"max_exp_avg_sq", ir::Role::kState, "vmax"},
                                                {"momentum_buffer", ir::Role::kState, "momentum"},
                                                {"sum", ir::Role::kState, "sum"},
                                                {"step", ir::Role::kStepCounter, "step"},
                                                {"lr", ir::Role::kInput, "lr"},
                                                {"batch", ir::Role::kInput, ""}}};

/// Arguments of fused optimizers, which are the ops with an argument called "grads".
constexpr std::array<GroupKind, 6> kOptimizerLists = {
    {{"exp_avgs", ir::Role::kState, "m"},
     {"exp_avg_sqs", ir::Role::kState, "v"},
     {"max_exp_avg_sqs", ir::Role::kState, "vmax"},
     {"momentum_buffer_list", ir::Role::kState, "momentum"},
     {"state_sums", ir::Role::kState, "sum"},
     {"state_steps", ir::Role::kStepCounter, "step"}}};

const GroupKind* findGroup(llvm::ArrayRef<GroupKind> groups, llvm::StringRef name) {
  const auto* found = llvm::find_if(groups, [&](const GroupKind& g) { return name == g.name; });
  return found == groups.end() ? nullptr : found;
}

std::string numbered(const std::string& stem, size_t number) {
  return stem + "." + std::to_string(number);
}

std::string called(const char* function, const std::string& name) {
  return std::string(function) + "(" + name + ")";
}

ir::StorageId storageOf(const Pt2Graph& draft, size_t input) {
  const ir::ValueId value = draft.inputs[input];
  return value.isValid() ? draft.graph.value(value).storage : ir::StorageId();
}

bool isWritten(const Pt2Graph& draft, size_t input) {
  const ir::StorageId storage = storageOf(draft, input);
  return storage.isValid() && draft.graph.lastVersion(storage) > 0;
}

/// What torch.fx calls a tensor that a trace found beside its arguments. Exported once more it is a
/// buffer of the traced module.
bool isTraceConstant(llvm::StringRef name) {
  const size_t dot = name.rfind('.');
  return ir::startsWith(dot == llvm::StringRef::npos ? name : name.substr(dot + 1),
                        "_tensor_constant");
}

/// What the signature says of an input; nothing of those that whoever calls gives.
std::optional<ir::Role> roleBySignature(const Pt2RoleFacts& facts, size_t input) {
  const bool written = isWritten(facts.draft, input);
  switch (facts.program.inputs[input].kind) {
    case Pt2Input::Kind::kParameter:
      return written ? ir::Role::kParameter : ir::Role::kFrozen;
    case Pt2Input::Kind::kBuffer:
      return !written && isTraceConstant(facts.program.inputs[input].name) ? ir::Role::kConstant
                                                                           : ir::Role::kBuffer;
    case Pt2Input::Kind::kConstant:
      return written ? ir::Role::kBuffer : ir::Role::kConstant;
    case Pt2Input::Kind::kUser:
      break;
  }
  return std::nullopt;
}

class SideFileRoles {
 public:
  SideFileRoles(const Pt2RoleFacts& facts, const Pt2SideFile& side, const std::string& file)
      : facts_(facts), side_(side), file_(file) {}

  ir::Expected<std::vector<Pt2InputRole>> find() {
    if (ir::Error error = findDescribed()) return error;
    for (const Pt2SideFile::Group& group : side_.groups) {
      const GroupKind* kind = findGroup(kGroups, group.name);
      if (kind == nullptr) return misfit("no group of inputs is called '" + group.name + "'");
      if (group.name == "train") {
        trainFirst_ = next_;
        trainCount_ = count(group);
      }
      for (size_t i = 0; i < count(group); ++i) {
        const size_t input = described_[next_++];
        roles_[input] = makeRole(group, *kind, i);
        if (ir::Error error = checkWrites(input)) return error;
      }
    }
    return std::move(roles_);
  }

 private:
  static size_t count(const Pt2SideFile::Group& group) { return static_cast<size_t>(group.count); }

  ir::Error misfit(const std::string& message) const {
    return ir::makeError(ir::PlanError(ir::ErrorCode::kParse, message).at({.file = file_}));
  }

  /// All inputs, or those that are not in the archive itself: tensors that the trace found beside
  /// its arguments are inputs too, and who wrote the file may not know of them.
  ir::Error findDescribed() {
    const size_t inputs = facts_.program.inputs.size();
    std::vector<size_t> given;
    roles_.resize(inputs);
    for (size_t i = 0; i < inputs; ++i) {
      const std::optional<ir::Role> role = roleBySignature(facts_, i);
      if (role) {
        roles_[i] = {.role = *role, .name = facts_.program.inputs[i].name};
      } else {
        given.push_back(i);
      }
    }
    // Compared before any sum, so that no sum overflows.
    size_t named = 0;
    for (const Pt2SideFile::Group& group : side_.groups) {
      if (count(group) > inputs) named = inputs + 1;
      if (named <= inputs) named += count(group);
    }
    if (named == inputs) {
      for (size_t i = 0; i < inputs; ++i) described_.push_back(i);
      return ir::success();
    }
    described_ = std::move(given);
    if (named == described_.size()) return ir::success();
    const std::string inside = described_.size() == inputs
                                   ? ""
                                   : ", " + std::to_string(inputs - described_.size()) +
                                         " of which are tensors inside the archive";
    return misfit("the groups do not add up to the archive's " + std::to_string(inputs) +
                  " inputs" + inside);
  }

  Pt2InputRole makeRole(const Pt2SideFile::Group& group, const GroupKind& kind, size_t i) const {
    Pt2InputRole role{.role = kind.role, .learningRate = group.name == "lr"};
    const bool perParameter =
        *kind.function != '\0' && count(group) == trainCount_ && !role.learningRate;
    if (!group.names.empty()) {
      role.name = group.names[i];
    } else if (perParameter) {
      role.name = called(kind.function, roles_[described_[trainFirst_ + i]].name);
    } else {
      role.name = count(group) == 1 ? group.name : numbered(group.name, i);
    }
    if (perParameter) role.owner = storageOf(facts_.draft, described_[trainFirst_ + i]);
    return role;
  }

  /// Parameters that no node writes are frozen, whatever they are called.
  ir::Error checkWrites(size_t input) {
    Pt2InputRole& role = roles_[input];
    const bool written = isWritten(facts_.draft, input);
    if (role.role == ir::Role::kParameter && !written) role.role = ir::Role::kFrozen;
    if (role.role != ir::Role::kFrozen || !written) return ir::success();
    return misfit("input " + std::to_string(input) + " '" + role.name +
                  "' is called frozen, but the step writes it");
  }

  const Pt2RoleFacts& facts_;
  const Pt2SideFile& side_;
  const std::string& file_;
  std::vector<Pt2InputRole> roles_;
  std::vector<size_t> described_;  // inputs, in the order of the groups
  size_t next_ = 0;                // of those
  size_t trainFirst_ = 0;          // of those
  size_t trainCount_ = 0;
};

class DataRoles {
 public:
  explicit DataRoles(const Pt2RoleFacts& facts)
      : facts_(facts), roles_(facts.program.inputs.size()), functions_(roles_.size(), "") {
    for (size_t i = 0; i < roles_.size(); ++i) {
      const ir::StorageId storage = storageOf(facts.draft, i);
      if (storage.isValid()) inputOf_[storage.raw()] = i;
    }
  }

  std::vector<Pt2InputRole> find() {
    readOptimizers();
    findForwardUse();
    for (size_t i = 0; i < roles_.size(); ++i) findRole(i);
    for (size_t i = 0; i < roles_.size(); ++i) findName(i, /*owned=*/false);
    for (size_t i = 0; i < roles_.size(); ++i) findName(i, /*owned=*/true);
    return std::move(roles_);
  }

 private:
  const ir::Graph& graph() const { return facts_.draft.graph; }

  const ir::ValueList* listAt(const ir::Node& node, std::optional<int> index) const {
    return index ? std::get_if<ir::ValueList>(&node.args[static_cast<size_t>(*index)]) : nullptr;
  }

  /// The input whose storage this is, if any.
  std::optional<size_t> inputOf(ir::ValueId value) const {
    if (!value.isValid()) return std::nullopt;
    const auto found = inputOf_.find(graph().value(value).storage.raw());
    return found == inputOf_.end() ? std::nullopt : std::optional(found->second);
  }

  void readOptimizers() {
    for (size_t i = 0; i < graph().nodes().size(); ++i) {
      const ir::Node& node = graph().nodes()[i];
      const Pt2Op& op = *facts_.draft.ops[facts_.draft.sources[i]];
      const c10::FunctionSchema& schema = op.facts->schema();
      const ir::ValueList* parameters = listAt(node, schema.argumentIndexWithName("self"));
      if (parameters == nullptr || !schema.argumentIndexWithName("grads")) continue;
      for (const GroupKind& list : kOptimizerLists) {
        const ir::ValueList* states = listAt(node, schema.argumentIndexWithName(list.name));
        if (states != nullptr) readStates(*states, list, *parameters);
      }
      readLearningRate(node, schema);
    }
  }

  void readStates(const ir::ValueList& states, const GroupKind& kind,
                  const ir::ValueList& parameters) {
    for (size_t i = 0; i < states.size(); ++i) {
      const std::optional<size_t> input = inputOf(states[i].value);
      if (!input) continue;
      roles_[*input].role = kind.role;
      functions_[*input] = kind.function;
      if (i < parameters.size() && inputOf(parameters[i].value)) {
        roles_[*input].owner = graph().value(parameters[i].value).storage;
      }
    }
  }

  void readLearningRate(const ir::Node& node, const c10::FunctionSchema& schema) {
    const std::optional<int> index = schema.argumentIndexWithName("lr");
    if (!index) return;
    const auto* rate = std::get_if<ir::ValueArg>(&node.args[static_cast<size_t>(*index)]);
    const std::optional<size_t> input = rate == nullptr ? std::nullopt : inputOf(rate->value);
    if (input) roles_[*input].learningRate = true;
  }

  void findForwardUse() {
    read_.assign(graph().storages().size(), false);
    written_ = read_;
    for (size_t i = 0; i < graph().nodes().size(); ++i) {
      if (!facts_.forward[i]) continue;
      for (const ir::Access& access : graph().accesses(ir::NodeId(i))) {
        if (access.reads()) read_[access.storage.index()] = true;
        if (access.writes()) written_[access.storage.index()] = true;
      }
    }
  }

  void findRole(size_t input) {
    Pt2InputRole& role = roles_[input];
    if (const std::optional<ir::Role> inside = roleBySignature(facts_, input)) {
      role.role = *inside;
      return;
    }
    // What a fused optimizer told about it stays.
    if (!isWritten(facts_.draft, input) || role.role != ir::Role::kInput) return;
    role.role = findWrittenRole(storageOf(facts_.draft, input));
  }

  ir::Role findWrittenRole(ir::StorageId storage) const {
    if (written_[storage.index()]) return ir::Role::kBuffer;
    return read_[storage.index()] ? ir::Role::kParameter : ir::Role::kState;
  }

  /// Names made from an owner's name come after all owners have theirs.
  void findName(size_t input, bool owned) {
    Pt2InputRole& role = roles_[input];
    const bool hasOwner = role.owner.isValid() && *functions_[input] != '\0';
    if (hasOwner != owned) return;
    const std::string& given = facts_.program.inputs[input].name;
    if (!given.empty()) {
      role.name = given;
    } else if (hasOwner) {
      role.name = called(functions_[input], roles_[inputOf_[role.owner.raw()]].name);
    } else {
      const std::string stem = role.learningRate ? "lr" : ir::roleName(role.role);
      role.name = numbered(stem, counts_[stem]++);
    }
  }

  const Pt2RoleFacts& facts_;
  std::vector<Pt2InputRole> roles_;
  std::vector<const char*> functions_;       // "" or what the name is made with
  llvm::DenseMap<int32_t, size_t> inputOf_;  // by storage
  std::vector<bool> read_, written_;         // by storage: in the forward pass
  llvm::StringMap<size_t> counts_;
};

}  // namespace

ir::Expected<std::vector<Pt2InputRole>> rolesFromSideFile(const Pt2RoleFacts& facts,
                                                          const Pt2SideFile& side,
                                                          const std::string& sideFileName) {
  return SideFileRoles(facts, side, sideFileName).find();
}

std::vector<Pt2InputRole> rolesFromData(const Pt2RoleFacts& facts) {
  return DataRoles(facts).find();
}

}  // namespace stowage::runtime
