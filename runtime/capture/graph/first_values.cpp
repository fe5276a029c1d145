// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/graph/first_values.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/fill.h>
#include <llvm/ADT/StringRef.h>

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "runtime/capture/graph/graph_assembly.h"
#include "runtime/capture/graph/graph_replay.h"
#include "runtime/capture/graph/node_uses.h"
#include "runtime/capture/trace/step_matcher.h"

namespace stowage::runtime {
namespace {

bool touches(const StepTrace& step, const TracedNode& node, StorageKey key) {
  bool found = writes(step, node, key);
  forEachArgument(node, [&](ir::ValueId id) { found = found || step.tensors[id].storage == key; });
  return found;
}

/// add_(state, x) with factor 1, alone or for a list of states.
bool isPlainAdd(const TracedNode& node) {
  if (node.op->name != "aten.add_.Tensor" && node.op->name != "aten._foreach_add_.List")
    return false;
  const auto* integer = std::get_if<int64_t>(&node.args[2]);
  const auto* number = std::get_if<double>(&node.args[2]);
  return (integer != nullptr && *integer == 1) || (number != nullptr && *number == 1.0);
}

/// mul_(state, number), alone or for a list of states. Python's number arrives as a tensor.
bool scalesByNumber(const TracedNode& node) {
  const std::string& op = node.op->name;
  const bool takesValue = std::holds_alternative<ir::ValueArg>(node.args[1]);
  return op == "aten.mul_.Scalar" || op == "aten._foreach_mul_.Scalar" ||
         (op == "aten.mul_.Tensor" && !takesValue);
}

bool writesInPlace(const StepTrace& step, const TracedNode& node, StorageKey key, bool whole) {
  return std::any_of(node.writes.begin(), node.writes.end(), [&](const ir::Node::Write& write) {
    return write.whole == whole && step.tensors[write.value].storage == key;
  });
}
/// Works on what is there already.
bool changes(const StepTrace& step, const TracedNode& node, StorageKey key) {
  return writesInPlace(step, node, key, /*whole=*/false);
}
bool overwrites(const StepTrace& step, const TracedNode& node, StorageKey key) {
  return writesInPlace(step, node, key, /*whole=*/true);
}

/// Is it the momentum that a fused update of the first step makes of its gradients?
bool isFirstMomentum(const StepTrace& first, StorageKey key) {
  return std::any_of(first.nodes.begin(), first.nodes.end(), [&](const TracedNode& node) {
    // _fused_sgd_(parameters, gradients, momenta, ...)
    const auto* momenta =
        node.args.size() > 2 ? std::get_if<ir::ValueList>(&node.args[2]) : nullptr;
    if (momenta == nullptr || !makesFirstMomentum(node)) return false;
    return std::any_of(momenta->begin(), momenta->end(), [&](const ir::ValueArg& momentum) {
      return momentum.value.isValid() && first.tensors[momentum.value].storage == key;
    });
  });
}

/// Is the state, in a later step, first scaled (or not), then added to; or overwritten unread?
bool isAccumulator(const StepTrace& later, StorageKey key) {
  for (const TracedNode& node : later.nodes) {
    if (!touches(later, node, key)) continue;
    if (overwrites(later, node, key) || isPlainAdd(node)) return true;
    if (!scalesByNumber(node)) return false;
  }
  return false;
}

StepTrace pick(const StepTrace& step, const std::vector<uint32_t>& nodes) {
  StepTrace picked;
  picked.tensors = step.tensors;
  picked.firstId = step.firstId;
  for (const uint32_t node : nodes) picked.nodes.push_back(step.nodes[node]);
  return picked;
}

ir::Expected<at::Tensor> negativeZeros(int64_t bytes, c10::ScalarType dtype) {
  const c10::Storage storage = allocateOnCpu(bytes);
  TensorShape shape{.sizes = {}, .strides = {1}, .offset = 0, .dtype = dtype};
  shape.sizes.push_back(bytes / static_cast<int64_t>(c10::elementSize(dtype)));
  makeTensor(storage, shape).fill_(c10::isFloatingType(dtype) ? -0.0 : 0.0);
  return bytesTensor(storage);
}

}  // namespace

ir::Expected<FirstValues> FirstValues::find(const StepTrace& first, const StepTrace& later,
                                            const StorageTable& storages,
                                            const std::vector<CreatedState>& states) {
  FirstValues values(first, storages);
  values.alignment_ = alignFirstStep(first, later, storages);
  for (const CreatedState& state : states) {
    if (state.key < first.firstId) {
      return ir::makeError(ir::ErrorCode::kUnsupported,
                           state.name +
                               " has no memory since an earlier capture, which did not know its "
                               "owner and could not give it back: name all optimizers, and "
                               "register what the module keeps as buffers");
    }
    Recipe recipe{.nodes = {}, .dtype = state.dtype};
    const bool isMomentum = isFirstMomentum(first, state.key);
    if (isMomentum || !values.findCreators(state.key, recipe.nodes)) {
      recipe.nodes.clear();
      if (!isMomentum && !isAccumulator(later, state.key)) {
        const bool isGradient = llvm::StringRef(state.name).startswith("grad(");
        return ir::makeError(
            ir::ErrorCode::kUnsupported,
            state.name + " starts with a value that depends on the first step's data or update; " +
                (isGradient
                     ? "call zero_grad() of every optimizer at the end of the step, or before "
                       "its first backward()"
                     : "make it before the first step, or run one step before capturing (SGD: "
                       "with dampening, that is the momentum's first value)"));
      }
    }
    values.recipes_.emplace(state.key, std::move(recipe));
  }
  if (ir::Error error = values.checkUnpaired(later)) return error;
  if (ir::Error error = values.checkFirstAlone()) return error;
  return values;
}

/// What the first step does alone is not in the plan: it may make state, and nothing else that any
/// step can see.
ir::Error FirstValues::checkFirstAlone() const {
  const std::unordered_map<StorageKey, uint32_t> lastTouch = lastPairedTouch();
  for (const uint32_t index : alignment_.onlyFirst) {
    const TracedNode& node = first_->nodes[index];
    const char* effect = node.op->random ? "draws random numbers" : nullptr;
    const auto visit = [&](ir::ValueId id) {
      if (effect != nullptr || !id.isValid()) return;
      const StorageKey key = first_->tensors[id].storage;
      if (recipes_.contains(key)) return;
      const auto touched = lastTouch.find(key);
      // A real tensor is from outside of the step.
      const bool isFromBefore = key < first_->firstId;
      const bool isUsed =
          touched != lastTouch.end() && (touched->second > index || storages_->isReal(key));
      if (isFromBefore || isUsed) effect = "changes what it and later steps compute with";
    };
    for (const ir::ValueId result : node.results) visit(result);
    for (const ir::Node::Write& write : node.writes) visit(write.value);
    if (effect == nullptr) continue;
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         node.op->name + " (" + ir::phaseName(node.phase) +
                             ") runs in the first step only and " + effect +
                             "; run one step before capturing, or do it before the first step");
  }
  return ir::success();
}

bool FirstValues::fillsAccumulator(const TracedNode& node) const {
  return std::any_of(recipes_.begin(), recipes_.end(), [&](const auto& recipe) {
    return recipe.second.nodes.empty() && writes(*first_, node, recipe.first);
  });
}

/// By storage, the last node of the first step that touches it and that every step has, or that
/// gives an accumulator its first contribution: later steps add the same.
std::unordered_map<StorageKey, uint32_t> FirstValues::lastPairedTouch() const {
  std::unordered_map<StorageKey, uint32_t> last;
  auto alone = alignment_.onlyFirst.begin();
  for (uint32_t i = 0; i < first_->nodes.size(); ++i) {
    const TracedNode& node = first_->nodes[i];
    const bool isAlone = alone != alignment_.onlyFirst.end() && *alone == i;
    if (isAlone) ++alone;
    if (isAlone && !fillsAccumulator(node)) continue;
    const auto note = [&](ir::ValueId id) {
      if (id.isValid()) last[first_->tensors[id].storage] = i;
    };
    forEachArgument(node, note);
    for (const ir::ValueId result : node.results) note(result);
    for (const ir::Node::Write& write : node.writes) note(write.value);
  }
  return last;
}

/// What later steps do and the first does not may only work on accumulators: -0.0 stays -0.0 under
/// a factor, and gives the other operand under an addition.
ir::Error FirstValues::checkUnpaired(const StepTrace& later) const {
  for (size_t k = 0; k < later.nodes.size(); ++k) {
    if (alignment_.firstOf[k] >= 0) continue;
    const TracedNode& node = later.nodes[k];
    const bool isHarmless =
        !node.writes.empty() &&
        std::all_of(node.writes.begin(), node.writes.end(), [&](const ir::Node::Write& write) {
          const auto recipe = recipes_.find(later.tensors[write.value].storage);
          return recipe != recipes_.end() && recipe->second.nodes.empty();
        });
    if (isHarmless) continue;
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         node.op->name +
                             " runs in every step but the first, which therefore cannot "
                             "be run as any later one; run one step before capturing");
  }
  return ir::success();
}

/// Does one of these calls read what an earlier call of the first step, none of them, has written?
/// Before that step it has another value.
bool FirstValues::readChanged(llvm::ArrayRef<uint32_t> nodes) const {
  std::unordered_set<StorageKey> changed;
  auto next = nodes.begin();
  for (uint32_t i = 0; next != nodes.end(); ++i) {
    const TracedNode& node = first_->nodes[i];
    if (i != *next) {
      for (const ir::Node::Write& write : node.writes) {
        changed.insert(first_->tensors[write.value].storage);
      }
      continue;
    }
    ++next;
    bool found = false;
    forEachArgument(node, [&](ir::ValueId id) {
      found = found || changed.contains(first_->tensors[id].storage);
    });
    if (found && !readsOnlyShape(node)) return true;
  }
  return false;
}

/// The calls of the first step alone that made `state`, and what they need. False when they need
/// something that the step computed.
bool FirstValues::findCreators(StorageKey state, std::vector<uint32_t>& nodes) const {
  std::set<StorageKey> wanted = {state}, made;
  std::set<uint32_t> picked;
  for (auto it = alignment_.onlyFirst.rbegin(); it != alignment_.onlyFirst.rend(); ++it) {
    const TracedNode& node = first_->nodes[*it];
    const bool isWanted = std::any_of(wanted.begin(), wanted.end(),
                                      [&](StorageKey key) { return writes(*first_, node, key); });
    if (!isWanted) continue;
    picked.insert(*it);
    for (const ir::ValueId result : node.results) {
      if (!result.isValid()) continue;
      const StorageKey key = first_->tensors[result].storage;
      if (!changes(*first_, node, key)) made.insert(key);
    }
    if (readsOnlyShape(node)) continue;
    forEachArgument(node, [&](ir::ValueId id) { wanted.insert(first_->tensors[id].storage); });
  }
  nodes.assign(picked.begin(), picked.end());
  return !picked.empty() && !readChanged(nodes) &&
         std::all_of(wanted.begin(), wanted.end(), [&](StorageKey key) {
           const bool isFromBefore = key < first_->firstId && !storages_->find(key)->input;
           return made.contains(key) || isFromBefore || storages_->isReal(key);
         });
}

ir::Expected<at::Tensor> FirstValues::make(StorageKey state, const BytesOf& bytesOf) const {
  const Recipe& recipe = recipes_.at(state);
  if (recipe.nodes.empty()) return negativeZeros(storages_->find(state)->bytes, recipe.dtype);
  return runRecipe(state, recipe, bytesOf);
}

ir::Expected<at::Tensor> FirstValues::runRecipe(StorageKey state, const Recipe& recipe,
                                                const BytesOf& bytesOf) const {
  const StepTrace step = pick(*first_, recipe.nodes);
  const StepRecord record{.step = step,
                          .storages = *storages_,
                          .known = {},
                          .scopes = std::vector<std::string>(step.nodes.size()),
                          .stepScalars = {},
                          .reports = {},
                          .outputGradients = false,
                          .onCpu = true};
  const AssembledGraph assembled = assembleGraph(record, "state", {});
  GraphReplay replay(assembled.graph);
  for (size_t i = 0; i < assembled.graph.nodes().size(); ++i) {
    const ir::NodeId node(i);
    for (const ir::Access& access : assembled.graph.accesses(node)) {
      if (readsOnlyShape(step.nodes[i]) || !access.reads() || replay.isBound(access.storage)) {
        continue;
      }
      ir::Expected<at::Tensor> bytes = bytesOf(assembled.keys[access.storage.index()]);
      if (!bytes) return bytes.takeError();
      replay.bind(access.storage, bytes->storage());
    }
    if (ir::Error error = replay.run(node)) return error;
  }
  for (size_t i = 0; i < assembled.keys.size(); ++i) {
    if (assembled.keys[i] == state) return replay.bytesOf(ir::StorageId(i));
  }
  return ir::makeError(ir::ErrorCode::kInternal, "the calls that make a state do not mention it");
}

}  // namespace stowage::runtime
