// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2/pt2_ops.h"

#include <ATen/core/jit_type.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace stowage::runtime {
namespace {

/// Views of their first argument, although their schema does not say so.
constexpr std::array<std::string_view, 4> kSilentViews = {
    "aten::_unsafe_view", "aten::lift", "aten::unsafe_split", "aten::unsafe_split_with_sizes"};

constexpr std::array<std::string_view, 5> kTypeChangingViews = {
    "aten.view.dtype", "aten.view_as_real.default", "aten.view_as_complex.default",
    "aten.real.default", "aten.imag.default"};

/// Views that mean other numbers than their bytes do.
constexpr std::array<std::string_view, 2> kLazyViews = {"aten::_conj", "aten::_neg_view"};

/// Made of other ops where it has no kernel of its own, which it has on CUDA only. A process
/// without CUDA does not know that.
constexpr std::array<std::string_view, 1> kCudaLeaves = {"aten::_fused_rms_norm"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

ir::Error unsupported(const std::string& message) {
  return ir::makeError(ir::ErrorCode::kUnsupported, message);
}

/// "torch.ops.aten.mm.default" -> aten::mm.
std::optional<c10::OperatorName> parseTarget(llvm::StringRef target) {
  if (!target.consume_front("torch.ops.")) return std::nullopt;
  llvm::SmallVector<llvm::StringRef, 3> parts;
  target.split(parts, '.');
  if (parts.size() != 3 || llvm::is_contained(parts, "")) return std::nullopt;
  return c10::OperatorName((parts[0] + "::" + parts[1]).str(),
                           parts[2] == "default" ? "" : parts[2].str());
}

bool isMadeOfOtherOps(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CUDA) &&
         !contains(kCudaLeaves, op.operator_name().name);
}

bool shareSet(const c10::AliasInfo& a, const c10::AliasInfo& b) {
  const auto& sets = b.beforeSets();
  return std::any_of(a.beforeSets().begin(), a.beforeSets().end(),
                     [&](const c10::Symbol& set) { return sets.count(set) > 0; });
}

/// `Tensor(a)[]` keeps its set one level down.
bool mayAlias(const c10::AliasInfo& a, const c10::AliasInfo& b) {
  if (shareSet(a, b)) return true;
  const auto inA = [&](const c10::AliasInfo& inner) { return mayAlias(inner, b); };
  const auto inB = [&](const c10::AliasInfo& inner) { return mayAlias(a, inner); };
  return std::any_of(a.containedTypes().begin(), a.containedTypes().end(), inA) ||
         std::any_of(b.containedTypes().begin(), b.containedTypes().end(), inB);
}

/// What the schema says a result aliases.
Pt2Return findAlias(const OpFacts& facts, const c10::Argument& result) {
  if (contains(kSilentViews, facts.handle.operator_name().name)) {
    return {.kind = Pt2Return::Kind::kView};
  }
  const c10::AliasInfo* alias = result.alias_info();
  if (alias == nullptr) return {};
  const auto& arguments = facts.schema().arguments();
  for (uint32_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* candidate = arguments[i].alias_info();
    if (candidate == nullptr || !mayAlias(*alias, *candidate)) continue;
    // Ops like t_ change the tensor object and no byte of it.
    const bool written = candidate->isWrite() && !facts.changesShape;
    return {.kind = written ? Pt2Return::Kind::kArgument : Pt2Return::Kind::kView, .argument = i};
  }
  return {};
}

Pt2Return describeReturn(const OpFacts& facts, const c10::Argument& result) {
  Pt2Return description = findAlias(facts, result);
  const c10::Type* type = result.real_type().get();
  description.isList = type->kind() == c10::TypeKind::ListType;
  if (description.isList) type = type->expectRef<c10::ListType>().getElementType().get();
  description.isTensor = type->kind() == c10::TypeKind::TensorType;
  return description;
}

/// Empty when the op can be part of an imported graph.
std::string findRefusal(const OpFacts& facts) {
  const std::string& name = facts.handle.operator_name().name;
  if (facts.refusal != nullptr) return facts.refusal;
  if (facts.readsBack) return "it gives a value to the host, which a static plan cannot hold";
  if (contains(kLazyViews, name)) return "its result is to be read as other numbers than its bytes";
  if (isMadeOfOtherOps(facts.handle)) {
    return "it is made of other ops; export the step below autograd (make_fx, then torch.export), "
           "which records those";
  }
  return "";
}

}  // namespace

ir::Expected<const Pt2Op*> Pt2Ops::lookUp(const std::string& target) {
  const auto known = ops_.find(target);
  if (known != ops_.end()) return &known->second;
  const std::optional<c10::OperatorName> name = parseTarget(target);
  if (!name) return unsupported("calls '" + target + "', expected an op (torch.ops.aten.…)");
  const auto handle = c10::Dispatcher::singleton().findSchema(*name);
  if (!handle) return unsupported("this libtorch has no op '" + target + "'");
  const OpFacts& facts = facts_.lookUp(*handle);
  if (std::string why = findRefusal(facts); !why.empty()) {
    return unsupported(facts.name + " cannot be part of a graph: " + why);
  }
  Pt2Op op{.facts = &facts, .changesType = contains(kTypeChangingViews, facts.name)};
  for (const c10::Argument& result : facts.schema().returns()) {
    op.returns.push_back(describeReturn(facts, result));
  }
  return &ops_.try_emplace(target, std::move(op)).first->second;
}

}  // namespace stowage::runtime
