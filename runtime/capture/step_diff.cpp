// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/step_diff.h"

#include <ATen/core/jit_type.h>

#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

namespace stowage::runtime {
namespace {

/// Kind of a schema argument, looking through optional and list.
c10::TypeKind elementKind(const c10::Argument& argument) {
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  if (const auto list = type->cast<c10::ListType>()) type = list->getElementType();
  return type->kind();
}

bool mayDiffer(const TracedNode& node, size_t argument) {
  const c10::TypeKind kind = elementKind(node.op->schema().arguments()[argument]);
  return kind == c10::TypeKind::NumberType || kind == c10::TypeKind::FloatType;
}

bool isNumber(const ir::Argument& argument) {
  return std::holds_alternative<int64_t>(argument) || std::holds_alternative<double>(argument);
}

HostNumber fromInteger(int64_t integer) {
  return {.isInteger = true, .value = static_cast<double>(integer), .integer = integer};
}
HostNumber fromDouble(double value) { return {.isInteger = false, .value = value, .integer = 0}; }

/// Compares two parts node by node, pairing the storages made inside them.
class Matcher {
 public:
  Matcher(const StepPart& a, const StepPart& b, const StorageTable& storages)
      : a_(a), b_(b), storages_(storages) {}

  /// Empty when node `i` of both parts is the same; else how it differs.
  std::string differenceAt(size_t i) {
    const TracedNode& a = a_.step.nodes[a_.begin + i];
    const TracedNode& b = b_.step.nodes[b_.begin + i];
    if (a.op != b.op) return "is " + a.op->name + " in " + in(a_) + b.op->name + " in " + b_.name;
    for (size_t k = 0; k < a.args.size(); ++k) {
      std::string why = difference(a.args[k], b.args[k], mayDiffer(a, k));
      if (!why.empty()) return "(" + a.op->name + "), argument " + nameOf(a, k) + " " + why;
    }
    for (size_t k = 0; k < a.results.size() && k < b.results.size(); ++k) {
      std::string why = difference(a.results[k], b.results[k]);
      if (!why.empty()) return "(" + a.op->name + "), result " + std::to_string(k) + " " + why;
    }
    return a.results.size() == b.results.size() ? "" : "(" + a.op->name + ") has more results";
  }

 private:
  std::string in(const StepPart& part) const { return part.name + " and "; }

  static std::string nameOf(const TracedNode& node, size_t argument) {
    return node.op->schema().arguments()[argument].name();
  }

  std::string difference(const ir::Argument& a, const ir::Argument& b, bool numbersMayDiffer) {
    if (a.index() != b.index()) return "has another kind";
    if (const auto* value = std::get_if<ir::ValueArg>(&a)) {
      return difference(value->value, std::get<ir::ValueArg>(b).value);
    }
    if (const auto* list = std::get_if<ir::ValueList>(&a)) {
      return difference(*list, std::get<ir::ValueList>(b));
    }
    if (const auto* number = std::get_if<ir::WrappedNumberArg>(&a)) {
      const auto& other = std::get<ir::WrappedNumberArg>(b);
      return number->dtype == other.dtype ? "" : "is a number of another type";
    }
    if (const auto* list = std::get_if<ir::NumberList>(&a); list != nullptr && numbersMayDiffer) {
      return list->size() == std::get<ir::NumberList>(b).size() ? "" : "has another length";
    }
    if (numbersMayDiffer && isNumber(a)) return "";
    return a == b ? "" : "has another value";
  }

  std::string difference(const ir::ValueList& a, const ir::ValueList& b) {
    if (a.size() != b.size()) return "has another length";
    for (size_t i = 0; i < a.size(); ++i) {
      std::string why = difference(a[i].value, b[i].value);
      if (!why.empty()) return "element " + std::to_string(i) + " " + why;
    }
    return "";
  }

  std::string difference(ir::ValueId a, ir::ValueId b) {
    if (a.isValid() != b.isValid()) return "is there in one and not in the other";
    if (!a.isValid()) return "";
    const TracedTensor& left = a_.step.tensors[a];
    const TracedTensor& right = b_.step.tensors[b];
    if (left.type != right.type) return "has another shape, layout or type";
    return storageDifference(left.storage, right.storage);
  }

  std::string storageDifference(StorageKey a, StorageKey b) {
    const bool isOldA = !storages_.isReal(a) && a < a_.step.firstId;
    const bool isOldB = !storages_.isReal(b) && b < b_.step.firstId;
    if (isOldA || isOldB) {
      return a == b ? "" : "is a tensor that an earlier step made and this one only reads";
    }
    const auto [known, isNew] = partners_.try_emplace(a, b);
    if (!isNew) return known->second == b ? "" : "is another tensor of the step";
    if (!partnersBack_.try_emplace(b, a).second) return "is another tensor of the step";
    return contentsDiffer(a, b) ? "holds host data that changes from step to step; make it an input"
                                : "";
  }

  bool contentsDiffer(StorageKey a, StorageKey b) const {
    const StorageFacts* left = storages_.find(a);
    const StorageFacts* right = storages_.find(b);
    if (left == nullptr || right == nullptr) return left != right;
    if (left->handFilled != right->handFilled) return true;
    if (left->handFilled) {
      return std::memcmp(left->contents.const_data_ptr(), right->contents.const_data_ptr(),
                         static_cast<size_t>(left->bytes)) != 0;
    }
    if (!left->real || a == b) return false;
    return std::memcmp(left->real.data(), right->real.data(),
                       static_cast<size_t>(left->bytes)) != 0;
  }

  const StepPart& a_;
  const StepPart& b_;
  const StorageTable& storages_;
  std::unordered_map<StorageKey, StorageKey> partners_, partnersBack_;
};

ir::Error stepChanged(size_t node, const std::string& how) {
  return ir::makeError(ir::ErrorCode::kUnsupported,
                       "the step changed at op " + std::to_string(node) + " " + how);
}

}  // namespace

bool operator==(const HostNumber& a, const HostNumber& b) {
  return a.isInteger == b.isInteger && a.integer == b.integer &&
         std::bit_cast<uint64_t>(a.value) == std::bit_cast<uint64_t>(b.value);
}

std::vector<ScalarSite> scalarSites(const StepTrace& step) {
  std::vector<ScalarSite> sites;
  for (uint32_t n = 0; n < step.nodes.size(); ++n) {
    const TracedNode& node = step.nodes[n];
    for (uint32_t k = 0; k < node.args.size(); ++k) {
      const ir::Argument& argument = node.args[k];
      if (std::holds_alternative<ir::WrappedNumberArg>(argument)) sites.push_back({n, k, -1});
      if (!mayDiffer(node, k)) continue;
      if (isNumber(argument)) sites.push_back({n, k, -1});
      const auto* list = std::get_if<ir::NumberList>(&argument);
      for (int32_t i = 0; list != nullptr && i < static_cast<int32_t>(list->size()); ++i) {
        sites.push_back({n, k, i});
      }
    }
  }
  return sites;
}

HostNumber numberAt(const StepTrace& step, const ScalarSite& site) {
  const ir::Argument& argument = step.nodes[site.node].args[site.argument];
  if (const auto* list = std::get_if<ir::NumberList>(&argument)) {
    const auto& element = (*list)[static_cast<size_t>(site.element)];
    if (const auto* flag = std::get_if<bool>(&element)) return fromInteger(*flag ? 1 : 0);
    if (const auto* integer = std::get_if<int64_t>(&element)) return fromInteger(*integer);
    return fromDouble(std::get<double>(element));
  }
  if (const auto* wrapped = std::get_if<ir::WrappedNumberArg>(&argument)) {
    if (const auto* integer = std::get_if<int64_t>(&wrapped->value)) return fromInteger(*integer);
    return fromDouble(std::get<double>(wrapped->value));
  }
  if (const auto* integer = std::get_if<int64_t>(&argument)) return fromInteger(*integer);
  return fromDouble(std::get<double>(argument));
}

StepPart wholeStep(const StepTrace& step, std::string name) {
  return {.step = step, .name = std::move(name), .begin = 0, .end = step.nodes.size()};
}

StepPart updateOf(const StepTrace& step, std::string name) {
  return {.step = step,
          .name = std::move(name),
          .begin = step.updateBegin,
          .end = step.nodes.size()};
}

ir::Error matchSteps(const StepPart& a, const StepPart& b, const StorageTable& storages) {
  Matcher matcher(a, b, storages);
  const size_t shared = std::min(a.end - a.begin, b.end - b.begin);
  for (size_t i = 0; i < shared; ++i) {
    const std::string how = matcher.differenceAt(i);
    if (!how.empty()) return stepChanged(a.begin + i, how + " (" + a.name + ", " + b.name + ")");
  }
  if (a.end - a.begin == b.end - b.begin) return ir::success();
  const StepPart& longer = a.end - a.begin > b.end - b.begin ? a : b;
  const StepPart& shorter = &longer == &a ? b : a;
  const size_t first = longer.begin + shared;
  return stepChanged(first, "is " + longer.step.nodes[first].op->name + " in " + longer.name +
                                " and absent in " + shorter.name);
}

}  // namespace stowage::runtime
