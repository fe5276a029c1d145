// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/loaded/index_sources.h"

#include <algorithm>
#include <optional>
#include <string>

#include "runtime/torch/torch_types.h"

namespace stowage::runtime {
namespace {

/// `forward` has seen `operand` and has returned `result`, which `op` takes, too: where the operand
/// is what it returned, both are that. The arguments `same` of both are of equal sizes, or equal.
struct SourceRule {
  const char* op;
  const char* operand;
  const char* forward;
  const char* returned;  // the operand of `op` that `forward` returned as its result 1
  const char* same[2];
};

constexpr SourceRule kRules[] = {
    {"aten.adaptive_max_pool2d_backward.default",
     "indices",
     "aten.adaptive_max_pool2d.default",
     "indices",
     {"self", ""}},
    {"aten.adaptive_max_pool3d_backward.default",
     "indices",
     "aten.adaptive_max_pool3d.default",
     "indices",
     {"self", ""}},
    {"aten.max_pool2d_with_indices_backward.default",
     "indices",
     "aten.max_pool2d_with_indices.default",
     "indices",
     {"self", ""}},
    {"aten.max_pool3d_with_indices_backward.default",
     "indices",
     "aten.max_pool3d_with_indices.default",
     "indices",
     {"self", ""}},
    {"aten.nll_loss2d_backward.default",
     "target",
     "aten.nll_loss2d_forward.default",
     "total_weight",
     {"self", "ignore_index"}},
    {"aten.nll_loss_backward.default",
     "target",
     "aten.nll_loss_forward.default",
     "total_weight",
     {"self", "ignore_index"}},
};

const SourceRule* findRule(llvm::StringRef op) {
  const auto* rule = std::find_if(std::begin(kRules), std::end(kRules),
                                  [&](const SourceRule& one) { return op == one.op; });
  return rule == std::end(kRules) ? nullptr : rule;
}

class SourceCheck {
 public:
  SourceCheck(const ir::Graph& graph, ir::NodeId node, const SourceRule& rule)
      : graph_(graph), node_(node), rule_(rule) {}

  ir::Error check() const {
    const std::optional<ir::ValueId> returned = valueOf(node_, rule_.returned);
    const std::optional<ir::ValueId> operand = valueOf(node_, rule_.operand);
    if (!returned || !operand) return wrong("is none");
    const std::optional<ir::NodeId> forward = findMaker(*returned);
    if (!forward) {
      return wrong("comes with '" + std::string(rule_.returned) + "' that is no result of " +
                   rule_.forward);
    }
    const bool isReturned = llvm::StringRef(rule_.operand) == rule_.returned;
    if (!isReturned && isSeenByAny(*operand)) return ir::success();
    if (!isReturned) {
      const std::optional<ir::ValueId> seen = valueOf(*forward, rule_.operand);
      if (!seen || !isSame(*seen, *operand) ||
          versionAt(*forward, *seen) != versionAt(node_, *operand)) {
        return wrong("is another one than that call of " + std::string(rule_.forward) + " saw");
      }
    }
    for (const char* name : rule_.same) {
      if (*name != '\0' && !agree(*forward, name)) {
        return wrong("comes from a call of " + std::string(rule_.forward) + " with another '" +
                     name + "'");
      }
    }
    return ir::success();
  }

 private:
  ir::Error wrong(const std::string& found) const {
    return ir::makeError(ir::ErrorCode::kParse, "found '" + std::string(rule_.operand) +
                                                    "', whose values are places, that " + found +
                                                    ", expected what " + rule_.forward +
                                                    " has seen before");
  }

  const ir::Argument* argumentOf(ir::NodeId id, llvm::StringRef name) const {
    const ir::Node& node = graph_.node(id);
    ir::Expected<c10::OperatorHandle> op = findOperator(node.op);
    if (!op) {
      llvm::consumeError(op.takeError());
      return nullptr;
    }
    const auto& arguments = op->schema().arguments();
    for (size_t i = 0; i < arguments.size() && i < node.args.size(); ++i) {
      if (arguments[i].name() == name) return &node.args[i];
    }
    return nullptr;
  }

  std::optional<ir::ValueId> valueOf(ir::NodeId id, llvm::StringRef name) const {
    const ir::Argument* argument = argumentOf(id, name);
    const auto* value = argument == nullptr ? nullptr : std::get_if<ir::ValueArg>(argument);
    if (value == nullptr || !value->value.isValid()) return std::nullopt;
    return value->value;
  }

  /// The call of `forward` that returned `value`, when nobody has written it since.
  std::optional<ir::NodeId> findMaker(ir::ValueId value) const {
    for (size_t i = 0; i < node_.index(); ++i) {
      const ir::NodeId id(i);
      const ir::Node& node = graph_.node(id);
      if (node.op != rule_.forward || node.results.size() < 2) continue;
      const ir::ValueId result = node.results[1];
      if (!result.isValid() || !isSame(result, value)) continue;
      if (versionAt(node_, value) == 1) return id;
    }
    return std::nullopt;
  }

  /// In row blocks the sum of weights comes from another call than the one that saw a block's rows.
  bool isSeenByAny(ir::ValueId operand) const {
    for (size_t i = 0; i < node_.index(); ++i) {
      const ir::NodeId id(i);
      if (graph_.node(id).op != rule_.forward) continue;
      const std::optional<ir::ValueId> seen = valueOf(id, rule_.operand);
      if (!seen || !isSame(*seen, operand) || versionAt(id, *seen) != versionAt(node_, operand)) {
        continue;
      }
      const bool agrees =
          std::all_of(std::begin(rule_.same), std::end(rule_.same),
                      [&](const char* name) { return *name == '\0' || agree(id, name); });
      if (agrees) return true;
    }
    return false;
  }

  bool isSame(ir::ValueId a, ir::ValueId b) const {
    return a == b || (graph_.value(a).storage == graph_.value(b).storage &&
                      graph_.value(a).type == graph_.value(b).type);
  }

  /// Which version of the value's storage a node reads; -1: none.
  int64_t versionAt(ir::NodeId id, ir::ValueId value) const {
    for (const ir::Access& access : graph_.accesses(id)) {
      if (access.storage == graph_.value(value).storage) return access.readVersion;
    }
    return -1;
  }

  bool agree(ir::NodeId forward, llvm::StringRef name) const {
    const ir::Argument* here = argumentOf(node_, name);
    const ir::Argument* there = argumentOf(forward, name);
    if (here == nullptr || there == nullptr) return here == there;
    const auto* a = std::get_if<ir::ValueArg>(here);
    const auto* b = std::get_if<ir::ValueArg>(there);
    if (a == nullptr || b == nullptr) return *here == *there;
    return a->value.isValid() && b->value.isValid() &&
           graph_.value(a->value).type.sizes == graph_.value(b->value).type.sizes;
  }

  const ir::Graph& graph_;
  const ir::NodeId node_;
  const SourceRule& rule_;
};

}  // namespace

bool takesIndices(llvm::StringRef op) { return findRule(op) != nullptr; }

ir::Error checkIndexSources(const ir::Graph& graph, ir::NodeId node) {
  const SourceRule* rule = findRule(graph.node(node).op);
  return rule == nullptr ? ir::success() : SourceCheck(graph, node, *rule).check();
}

}  // namespace stowage::runtime
