// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/graph/known_values.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/full.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "runtime/capture/dispatch/tracer.h"
#include "runtime/capture/graph/graph_assembly.h"
#include "runtime/capture/graph/graph_replay.h"
#include "runtime/capture/graph/node_uses.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {
namespace {

/// Host code asks about a mask or a few counts; a large computation is no question.
constexpr size_t kMostNodes = 256;

/// Ops that compute no floating-point number which they did not take.
bool movesOrCompares(llvm::StringRef op) {
  constexpr llvm::StringRef kOps[] = {"_to_copy",
                                      "clone",
                                      "copy_",
                                      "cat",
                                      "stack",
                                      "index_select",
                                      "gather",
                                      "where",
                                      "eq",
                                      "ne",
                                      "lt",
                                      "le",
                                      "gt",
                                      "ge",
                                      "zeros",
                                      "zeros_like",
                                      "ones",
                                      "full",
                                      "isnan",
                                      "any",
                                      "all",
                                      "repeat",
                                      "masked_fill",
                                      "masked_fill_",
                                      "new_zeros",
                                      "ones_like",
                                      "upsample_nearest1d",
                                      "upsample_nearest2d",
                                      "constant_pad_nd"};
  return op.consume_front("aten.") && llvm::is_contained(kOps, op.split('.').first);
}

/// The calls that make one tensor, and what they begin with.
class Slice {
 public:
  Slice(const StepTrace& step, ir::ValueId tensor) : step_(step) { wanted_.insert(keyOf(tensor)); }

  /// False when something random goes in, or too much.
  bool find() {
    for (size_t i = step_.nodes.size(); i-- > 0;) {
      const TracedNode& node = step_.nodes[i];
      if (!makesWanted(node)) continue;
      if (node.op->random || nodes_.size() == kMostNodes) return false;
      nodes_.push_back(static_cast<uint32_t>(i));
      for (const ir::ValueId result : node.results) {
        if (result.isValid()) made_.insert(keyOf(result));
      }
      if (readsOnlyShape(node)) continue;
      forEachArgument(node, [&](ir::ValueId id) { wanted_.insert(keyOf(id)); });
    }
    std::reverse(nodes_.begin(), nodes_.end());
    return true;
  }

  /// Storages that it reads and does not make.
  std::vector<StorageKey> leaves() const {
    std::vector<StorageKey> leaves;
    for (const StorageKey key : wanted_) {
      if (!made_.contains(key)) leaves.push_back(key);
    }
    return leaves;
  }

  StepTrace trace() const {
    StepTrace picked;
    picked.tensors = step_.tensors;
    picked.firstId = step_.firstId;
    for (const uint32_t node : nodes_) picked.nodes.push_back(step_.nodes[node]);
    return picked;
  }

  /// Do all its tensors hold integers or booleans, whose arithmetic no device rounds? With
  /// `allowMoves`, or are floating-point numbers only moved and compared?
  bool isExact(bool allowMoves) const {
    const auto isWhole = [&](ir::ValueId id) {
      return !id.isValid() || !c10::isFloatingType(toScalarType(step_.tensors[id].type.dtype));
    };
    return llvm::all_of(nodes_, [&](uint32_t index) {
      const TracedNode& node = step_.nodes[index];
      if (allowMoves && movesOrCompares(node.op->name)) return true;
      bool exact = llvm::all_of(node.results, isWhole);
      if (readsOnlyShape(node)) return exact;
      forEachArgument(node, [&](ir::ValueId id) { exact = exact && isWhole(id); });
      return exact;
    });
  }

 private:
  StorageKey keyOf(ir::ValueId id) const { return step_.tensors[id].storage; }

  bool makesWanted(const TracedNode& node) const {
    const auto isWanted = [&](ir::ValueId id) {
      return id.isValid() && wanted_.contains(keyOf(id));
    };
    return llvm::any_of(node.results, isWanted) ||
           llvm::any_of(node.writes, [&](const auto& write) { return isWanted(write.value); });
  }

  const StepTrace& step_;
  std::unordered_set<StorageKey> wanted_, made_;
  std::vector<uint32_t> nodes_;
};

c10::Storage copyOnCpu(const c10::Storage& storage) {
  return bytesTensor(storage).to(c10::kCPU, /*non_blocking=*/false, /*copy=*/true).storage();
}

/// Nothing for what is no constant and no input.
std::optional<c10::Storage> bytesOfLeaf(StorageKey key, const StorageTable& storages,
                                        const InputValues& inputs) {
  if (const auto found = inputs.find(key); found != inputs.end()) {
    return copyOnCpu(found->second.storage());
  }
  const StorageFacts* facts = storages.find(key);
  if (facts == nullptr || facts->written) return std::nullopt;
  if (facts->contents.defined()) return copyOnCpu(facts->contents.storage());
  if (facts->real) return copyOnCpu(facts->real);
  return std::nullopt;
}

/// The node that made `tensor` and nothing wrote to since; null: none.
const TracedNode* onlyMaker(const StepTrace& step, ir::ValueId tensor) {
  const TracedNode* maker = nullptr;
  const StorageKey key = step.tensors[tensor].storage;
  for (const TracedNode& node : step.nodes) {
    if (!writes(step, node, key)) continue;
    if (maker != nullptr) return nullptr;
    maker = &node;
  }
  return maker;
}

std::optional<double> numberIn(const ir::Argument& argument) {
  if (const auto* number = std::get_if<double>(&argument)) return *number;
  if (const auto* integer = std::get_if<int64_t>(&argument)) return static_cast<double>(*integer);
  return std::nullopt;
}

/// torch.rand() draws from [0, 1): what is it to be below 0, or not below 1?
std::optional<bool> comparisonOfDraw(const StepTrace& step, ir::ValueId tensor) {
  const TracedNode* comparison = onlyMaker(step, tensor);
  if (comparison == nullptr || comparison->args.size() < 2) return std::nullopt;
  const auto* drawn = std::get_if<ir::ValueArg>(&comparison->args[0]);
  const std::optional<double> number = numberIn(comparison->args[1]);
  if (drawn == nullptr || !number) return std::nullopt;
  const TracedNode* draw = onlyMaker(step, drawn->value);
  if (draw == nullptr || draw->op->name != "aten.rand.default") return std::nullopt;
  const std::string& op = comparison->op->name;
  const bool allReach = *number <= 0, noneReaches = *number >= 1;
  if (op == "aten.lt.Scalar" && (allReach || noneReaches)) return noneReaches;
  if (op == "aten.ge.Scalar" && (allReach || noneReaches)) return allReach;
  if (op == "aten.gt.Scalar" && (*number < 0 || noneReaches)) return *number < 0;
  if (op == "aten.le.Scalar" && (*number < 0 || noneReaches)) return noneReaches;
  return std::nullopt;
}

using BytesByKey = std::unordered_map<StorageKey, c10::Storage>;

/// Nothing when one of them is no constant and no input.
std::optional<BytesByKey> bytesOfLeaves(const Slice& slice, const StorageTable& storages,
                                        const InputValues& inputs) {
  BytesByKey begin;
  for (const StorageKey key : slice.leaves()) {
    std::optional<c10::Storage> bytes = bytesOfLeaf(key, storages, inputs);
    if (!bytes) return std::nullopt;
    begin.emplace(key, std::move(*bytes));
  }
  return begin;
}

/// The bytes of `wanted` after the calls of `slice` have run on the CPU, from `begin`.
std::optional<c10::Storage> runSlice(const Slice& slice, const StorageTable& storages,
                                     const BytesByKey& begin, StorageKey wanted) {
  const StepTrace picked = slice.trace();
  const AssembledGraph assembled =
      assembleGraph({.step = picked,
                     .storages = storages,
                     .known = {},
                     .scopes = std::vector<std::string>(picked.nodes.size()),
                     .stepScalars = {},
                     .reports = {},
                     .outputGradients = false,
                     .onCpu = true},
                    "known", {});
  GraphReplay replay(assembled.graph);
  for (size_t i = 0; i < assembled.keys.size(); ++i) {
    const auto found = begin.find(assembled.keys[i]);
    if (found != begin.end()) replay.bind(ir::StorageId(i), found->second);
  }
  for (size_t i = 0; i < assembled.graph.nodes().size(); ++i) {
    if (ir::Error error = replay.run(ir::NodeId(i))) {
      llvm::consumeError(std::move(error));
      return std::nullopt;
    }
  }
  const auto at = llvm::find(assembled.keys, wanted);
  if (at == assembled.keys.end()) return std::nullopt;
  const ir::StorageId storage(static_cast<size_t>(at - assembled.keys.begin()));
  return replay.bytesOf(storage).storage();
}

}  // namespace

std::optional<KnownValue> findKnownValue(const StepTrace& step, const StorageTable& storages,
                                         ir::ValueId tensor, const InputValues& inputs,
                                         KnownUse use) {
  const NotTraced notTraced;
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  if (const std::optional<bool> compared = comparisonOfDraw(step, tensor)) {
    const TensorShape drawn = shapeOf(step.tensors[tensor].type);
    return KnownValue{.value = at::full(drawn.sizes, *compared, at::kBool)};
  }
  Slice slice(step, tensor);
  if (!slice.find()) return std::nullopt;
  KnownValue known;
  const std::optional<BytesByKey> begin = bytesOfLeaves(slice, storages, inputs);
  if (!begin) return std::nullopt;
  known.usesInputs =
      llvm::any_of(*begin, [&](const auto& leaf) { return inputs.contains(leaf.first); });
  const bool mustBeExact = use.purpose == KnownFor::kSize ? known.usesInputs || !use.isOnCpu
                                                          : known.usesInputs && !use.isOnCpu;
  if (mustBeExact && !slice.isExact(/*allowMoves=*/use.isOnCpu)) return std::nullopt;
  const StorageKey wanted = step.tensors[tensor].storage;
  const TensorShape shape = shapeOf(step.tensors[tensor].type);
  if (const auto found = begin->find(wanted); found != begin->end()) {
    known.value = makeTensor(found->second, shape);
    return known;
  }
  const std::optional<c10::Storage> made = runSlice(slice, storages, *begin, wanted);
  if (!made) return std::nullopt;
  known.value = makeTensor(*made, shape);
  return known;
}

}  // namespace stowage::runtime
