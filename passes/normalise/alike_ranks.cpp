// SPDX-License-Identifier: Apache-2.0
#include "passes/normalise/alike_ranks.h"

#include <llvm/ADT/STLExtras.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/graph/op_table.h"
#include "ir/graph/random_ops.h"
#include "passes/normalise/graph_edit.h"

namespace stowage::passes {

namespace {

ir::Error refuse(const std::string& what) {
  return ir::makeError(ir::ErrorCode::kUnsupported, what + ", so that ranks would train apart");
}

/// "aten.add_.Tensor" -> "add_".
llvm::StringRef baseOf(llvm::StringRef op) { return op.split('.').second.split('.').first; }

/// Does the in-place op give the mean of its results for the mean of what it adds?
bool isLinear(const ir::Node& node) {
  static constexpr llvm::StringLiteral kAdding[] = {"add_",
                                                    "sub_",
                                                    "copy_",
                                                    "index_add_",
                                                    "index_put_",
                                                    "scatter_add_",
                                                    "_index_put_impl_",
                                                    "_foreach_add_"};
  static constexpr llvm::StringLiteral kScaling[] = {"mul_", "div_", "_foreach_mul_",
                                                     "_foreach_div_"};
  const llvm::StringRef base = baseOf(node.op);
  if (llvm::is_contained(kAdding, base)) return true;
  const auto* factor = node.args.size() > 1 ? &node.args[1] : nullptr;
  return llvm::is_contained(kScaling, base) && factor != nullptr &&
         !std::holds_alternative<ir::ValueArg>(*factor) &&
         !std::holds_alternative<ir::ValueList>(*factor);
}

bool isFloating(ir::DType dtype) {
  return dtype == ir::DType::kF64 || dtype == ir::DType::kF32 || dtype == ir::DType::kF16 ||
         dtype == ir::DType::kBF16;
}

bool isOfOptimizer(ir::Role role) {
  return role == ir::Role::kParameter || role == ir::Role::kMaster || role == ir::Role::kState ||
         role == ir::Role::kStepCounter;
}

class AlikeCheck {
 public:
  explicit AlikeCheck(const ir::Graph& graph) : graph_(graph), uses_(graph.storages().size()) {}

  ir::Error run() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (ir::Error error = noteNode(ir::NodeId(i))) return error;
    }
    for (const ir::Value& value : graph_.values()) noteValue(value);
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (ir::Error error = checkStorage(ir::StorageId(i))) return error;
    }
    return ir::success();
  }

 private:
  struct Use {
    int64_t firstInUpdate = -1;  // node of the optimizer that accesses it
    int64_t lastOutside = -1;    // any other node
    bool isWrittenOutside = false;
    ir::NodeId reader;  // outside, of more than a linear op needs to write it
    bool hasOneType = true;
    std::optional<ir::DType> dtype;
  };

  ir::Error noteNode(ir::NodeId id) {
    const ir::Node& node = graph_.node(id);
    if (isCollective(node.op)) {
      return ir::makeError(
          ir::ErrorCode::kUnsupported,
          graph_.describeNode(id) + " is a collective, expected a step of one process alone");
    }
    const bool inUpdate = ir::updatesModel(node.phase);
    if (inUpdate && (ir::drawsRandomNumbers(node) || !ir::lookUpOp(node.op).known)) {
      return refuse(graph_.describeNode(id) + " draws random numbers or is not known");
    }
    for (const ir::Access& access : graph_.accesses(id)) {
      Use& use = uses_[access.storage.index()];
      const auto at = static_cast<int64_t>(id.index());
      if (inUpdate) {
        if (use.firstInUpdate < 0) use.firstInUpdate = at;
        continue;
      }
      use.lastOutside = at;
      use.isWrittenOutside = use.isWrittenOutside || access.writes();
      const bool isOwn = access.writes() && isLinear(node);
      if (access.reads() && !isOwn && !use.reader.isValid()) use.reader = id;
    }
    return ir::success();
  }

  void noteValue(const ir::Value& value) {
    Use& use = uses_[value.storage.index()];
    use.hasOneType = use.hasOneType && use.dtype.value_or(value.type.dtype) == value.type.dtype;
    use.dtype = value.type.dtype;
  }

  ir::Error checkStorage(ir::StorageId id) {
    const ir::Storage& info = graph_.storage(id);
    const Use& use = uses_[id.index()];
    const std::string name = "'" + info.name + "' ";
    if (info.persistent && isOfOptimizer(info.role) && use.isWrittenOutside) {
      return refuse(name + "is written by forward or backward");
    }
    if (use.firstInUpdate < 0) return ir::success();
    if (info.role == ir::Role::kInput) {
      // One element may be a learning rate, which is the same for all.
      const bool isOne = use.dtype && info.bytes.value() <= ir::elementBytes(*use.dtype);
      return isOne ? ir::success() : refuse(name + "is an input that an update reads");
    }
    if (!use.isWrittenOutside) return ir::success();
    if (info.role != ir::Role::kGradient) return refuse(name + "is read by an update");
    return checkGradient(name, info, use);
  }

  ir::Error checkGradient(const std::string& name, const ir::Storage& info, const Use& use) {
    if (info.persistent) return refuse(name + "lives from step to step");
    if (info.output) return refuse(name + "is delivered, and updates read its mean");
    if (!use.hasOneType || !isFloating(*use.dtype)) {
      return refuse(name + "has no floating type or more than one");
    }
    if (use.lastOutside > use.firstInUpdate)
      return refuse(name + "is used after an update read it");
    if (use.reader.isValid()) {
      return refuse(graph_.describeNode(use.reader) + " reads " + name + "before its mean is made");
    }
    return ir::success();
  }

  const ir::Graph& graph_;
  std::vector<Use> uses_;
};

}  // namespace

ir::Error checkRanksStayAlike(const ir::Graph& graph) { return AlikeCheck(graph).run(); }

}  // namespace stowage::passes
