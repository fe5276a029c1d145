// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/trace/step_matcher.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace stowage::runtime {
namespace {

/// Kind of a schema argument, looking through optional and list.
c10::TypeKind elementKind(const c10::Argument& argument) {
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  if (const auto list = type->cast<c10::ListType>()) type = list->getElementType();
  return type->kind();
}

bool isNumber(const ir::Argument& argument) {
  return std::holds_alternative<int64_t>(argument) || std::holds_alternative<double>(argument);
}

bool bytesDiffer(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() != b.nbytes() ||
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) != 0;
}

bool bytesDiffer(const c10::Storage& a, const c10::Storage& b) {
  if (a.nbytes() != b.nbytes() || a.device_type() != c10::kCPU || b.device_type() != c10::kCPU) {
    return true;
  }
  return std::memcmp(a.data(), b.data(), a.nbytes()) != 0;
}

bool isFusedSgd(const TracedNode& node) { return node.op->name.find("aten._fused_sgd_.") == 0; }

std::optional<size_t> positionOf(const TracedNode& node, const char* argument) {
  const std::optional<int> position = node.op->schema().argumentIndexWithName(argument);
  return position ? std::optional(static_cast<size_t>(*position)) : std::nullopt;
}

bool hasNoDampening(const TracedNode& node) {
  const std::optional<size_t> position = positionOf(node, "dampening");
  return position && node.args[*position] == ir::Argument(0.0);
}

}  // namespace

bool numberMayDiffer(const TracedNode& node, size_t argument) {
  if (std::holds_alternative<ir::WrappedNumberArg>(node.args[argument])) return true;
  const c10::TypeKind kind = elementKind(node.op->schema().arguments()[argument]);
  return kind == c10::TypeKind::NumberType || kind == c10::TypeKind::FloatType;
}

bool makesFirstMomentum(const TracedNode& node) {
  const std::optional<size_t> flag = positionOf(node, "is_first_step");
  return flag && isFusedSgd(node) && node.args[*flag] == ir::Argument(true);
}

std::string StepMatcher::differenceBetween(size_t i, size_t k) {
  const TracedNode& left = a_.nodes[i];
  const TracedNode& right = b_.nodes[k];
  if (left.op != right.op) {
    return "is " + left.op->name + " in " + nameOfA_ + " and " + right.op->name + " in " + nameOfB_;
  }
  added_.clear();
  const std::string why = compare(left, right);
  if (why.empty()) return why;
  for (const auto& [a, b] : added_) {
    partners_.erase(a);
    partnersBack_.erase(b);
  }
  return why + " (" + nameOfA_ + ", " + nameOfB_ + ")";
}

std::string StepMatcher::compare(const TracedNode& a, const TracedNode& b) {
  const std::string named = "(" + a.op->name + "), ";
  const bool isFirst = acceptsFirstMomentum_ && makesFirstMomentum(a) && hasNoDampening(b);
  for (size_t k = 0; k < a.args.size(); ++k) {
    if (isFirst && positionOf(a, "is_first_step") == k) continue;
    const std::string why = compare(a.args[k], b.args[k], numberMayDiffer(a, k));
    if (!why.empty()) {
      return named + "argument " + a.op->schema().arguments()[k].name() + " " + why;
    }
  }
  if (a.results.size() != b.results.size()) return named + "which has another number of results";
  for (size_t k = 0; k < a.results.size(); ++k) {
    const std::string why = compare(a.results[k], b.results[k]);
    if (!why.empty()) return named + "result " + std::to_string(k) + " " + why;
  }
  return "";
}

std::string StepMatcher::compare(const ir::Argument& a, const ir::Argument& b,
                                 bool numbersMayDiffer) {
  if (a.index() != b.index()) return "has another kind";
  if (const auto* value = std::get_if<ir::ValueArg>(&a)) {
    return compare(value->value, std::get<ir::ValueArg>(b).value);
  }
  if (const auto* list = std::get_if<ir::ValueList>(&a)) {
    return compare(*list, std::get<ir::ValueList>(b));
  }
  if (const auto* number = std::get_if<ir::WrappedNumberArg>(&a)) {
    const auto& other = std::get<ir::WrappedNumberArg>(b);
    return number->dtype == other.dtype ? "" : "is a number of another type";
  }
  const auto* list = std::get_if<ir::NumberList>(&a);
  if (list != nullptr && numbersMayDiffer) {
    return list->size() == std::get<ir::NumberList>(b).size() ? "" : "has another length";
  }
  if (numbersMayDiffer && isNumber(a)) return "";
  return a == b ? "" : "has another value";
}

std::string StepMatcher::compare(const ir::ValueList& a, const ir::ValueList& b) {
  if (a.size() != b.size()) return "has another length";
  for (size_t i = 0; i < a.size(); ++i) {
    const std::string why = compare(a[i].value, b[i].value);
    if (!why.empty()) return "element " + std::to_string(i) + " " + why;
  }
  return "";
}

std::string StepMatcher::compare(ir::ValueId a, ir::ValueId b) {
  if (a.isValid() != b.isValid()) return "is there in one and not in the other";
  if (!a.isValid()) return "";
  const TracedTensor& left = a_.tensors[a];
  const TracedTensor& right = b_.tensors[b];
  if (left.type != right.type) return "has another shape, layout or type";
  return compareStorages(left.storage, right.storage);
}

bool StepMatcher::isOlderThan(const StepTrace& step, StorageKey key) const {
  return !storages_.isReal(key) && key < step.firstId;
}

std::string StepMatcher::compareStorages(StorageKey a, StorageKey b) {
  if (const auto stands = known_.find(b); stands != known_.end()) b = stands->second;
  if (isOlderThan(a_, a) || isOlderThan(b_, b)) {
    return a == b ? ""
                  : "is a tensor that an earlier step made and this one only reads: keep it "
                    "in a buffer that the module registers (an optimizer: in its state), and copy_ "
                    "into that";
  }
  const auto known = partners_.find(a);
  if (known != partners_.end()) return known->second == b ? "" : "is another tensor of the step";
  if (partnersBack_.contains(b)) return "is another tensor of the step";
  if (contentsDiffer(a, b)) return "is host data that changes from step to step; make it an input";
  partners_.emplace(a, b);
  partnersBack_.emplace(b, a);
  added_.emplace_back(a, b);
  return "";
}

bool StepMatcher::contentsDiffer(StorageKey a, StorageKey b) const {
  const StorageFacts* left = storages_.find(a);
  const StorageFacts* right = storages_.find(b);
  if (a == b || left == nullptr || right == nullptr) return left != right;
  if (left->handFilled || right->handFilled) {
    return left->handFilled != right->handFilled || bytesDiffer(left->contents, right->contents);
  }
  return left->real && right->real && bytesDiffer(left->realBytes(), right->realBytes());
}

}  // namespace stowage::runtime
