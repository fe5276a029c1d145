// SPDX-License-Identifier: Apache-2.0
#include "tests/support/call_mutants.h"

#include <ATen/Functions.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "runtime/capture/ops/encode_argument.h"

namespace stowage::tests {

namespace {

using Change = std::function<at::Tensor(const at::Tensor&)>;

at::Tensor filled(const std::vector<int64_t>& sizes, const at::Tensor& like) {
  return at::ones(sizes, like.options());
}

at::ScalarType anotherType(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return at::kDouble;
    case at::kBool:
      return at::kFloat;
    case at::kLong:
      return at::kInt;
    case at::kInt:
      return at::kLong;
    default:
      return at::kFloat;
  }
}

/// Other tensors in the place of one, each with what it is.
std::vector<std::pair<std::string, Change>> shapeChanges(const at::Tensor& original) {
  std::vector<std::pair<std::string, Change>> changes;
  const auto add = [&](std::string what, Change change) {
    changes.emplace_back(std::move(what), std::move(change));
  };
  for (int64_t dim = 0; dim < original.dim(); ++dim) {
    const std::string at = " in dimension " + std::to_string(dim);
    for (const auto& [name, size] : {std::pair("is halved", original.size(dim) / 2),
                                     std::pair("has one more", original.size(dim) + 1),
                                     std::pair("is cut to one", int64_t{1})}) {
      if (size == original.size(dim)) continue;
      add(name + at, [dim, size = size](const at::Tensor& tensor) {
        std::vector<int64_t> sizes = tensor.sizes().vec();
        sizes[static_cast<size_t>(dim)] = size;
        return filled(sizes, tensor);
      });
    }
  }
  add("is empty", [](const at::Tensor& tensor) {
    std::vector<int64_t> sizes = tensor.sizes().vec();
    if (sizes.empty()) sizes = {1};
    sizes[0] = 0;
    return filled(sizes, tensor);
  });
  add("has no elements and one dimension",
      [](const at::Tensor& tensor) { return filled({0}, tensor); });
  if (original.dim() > 0) {
    add("has a dimension less",
        [](const at::Tensor& tensor) { return filled(tensor.sizes().slice(1).vec(), tensor); });
    add("is one number", [](const at::Tensor& tensor) { return filled({}, tensor); });
    add("is one element for all",
        [](const at::Tensor& tensor) { return filled({}, tensor).expand(tensor.sizes()); });
  }
  add("has a dimension more", [](const at::Tensor& tensor) { return tensor.unsqueeze(0); });
  add("has another type", [](const at::Tensor& tensor) {
    return filled(tensor.sizes().vec(), tensor).to(anotherType(tensor.scalar_type()));
  });
  add("has a small type",
      [](const at::Tensor& tensor) { return filled(tensor.sizes().vec(), tensor).to(at::kChar); });
  add("is undefined", [](const at::Tensor&) { return at::Tensor(); });
  return changes;
}

std::vector<std::pair<std::string, Change>> valueChanges(const at::Tensor& original) {
  if (!at::isIntegralType(original.scalar_type(), /*includeBool=*/false)) return {};
  std::vector<std::pair<std::string, Change>> changes;
  for (const int64_t value : {int64_t{1} << 40, int64_t{-7}, int64_t{100}, int64_t{1} << 20,
                              std::numeric_limits<int64_t>::min()}) {
    changes.emplace_back("holds " + std::to_string(value), [value](const at::Tensor& tensor) {
      return at::full(tensor.sizes(), value, tensor.options().dtype(at::kLong))
          .to(tensor.scalar_type());
    });
  }
  return changes;
}

using Changes = std::function<std::vector<std::pair<std::string, Change>>(const at::Tensor&)>;

class Spoiler {
 public:
  explicit Spoiler(const KeptCall& call) : call_(call) {}

  void spoilTensors(size_t i, const Changes& changesOf) {
    const c10::IValue& value = call_.args[i];
    if (value.isTensor() && value.toTensor().defined()) {
      for (const auto& [what, change] : changesOf(value.toTensor())) {
        add(i, what, change(value.toTensor()));
      }
    } else if (value.isTensorList()) {
      spoilList(i, value.toTensorVector(), changesOf);
    } else if (value.isOptionalTensorList()) {
      spoilOptionalList(i, changesOf);
    }
  }

  void spoilNumbers(size_t i) {
    const c10::IValue& value = call_.args[i];
    if (isNamed(call_.op.schema().arguments()[i])) return;
    if (value.isInt()) {
      for (const int64_t other : otherIntegers(value.toInt())) add(i, "is " + text(other), other);
    } else if (value.isBool()) {
      add(i, "is flipped", !value.toBool());
    } else if (value.isDouble()) {
      for (const double other : {0.0, -1.0, 1e30, std::nan("")}) add(i, "is " + text(other), other);
    } else if (value.isIntList()) {
      spoilIntegers(i, value.toIntVector());
    }
  }

  std::vector<CallMutant> take() { return std::move(mutants_); }

 private:
  template <typename Number>
  static std::string text(Number number) {
    return std::to_string(number);
  }

  /// Given by name in a graph, and only by a name that exists.
  static bool isNamed(const c10::Argument& argument) {
    c10::TypePtr type = argument.real_type();
    if (type->kind() == c10::TypeKind::OptionalType) {
      type = type->expectRef<c10::OptionalType>().getElementType();
    }
    return type->kind() == c10::TypeKind::ScalarTypeType ||
           type->kind() == c10::TypeKind::LayoutType ||
           type->kind() == c10::TypeKind::MemoryFormatType;
  }

  static std::vector<int64_t> otherIntegers(int64_t value) {
    return {0, -1, 1, value + 1, value * 2 + 3, -value - 5, int64_t{1} << 33, INT64_MAX, INT64_MIN};
  }

  void add(size_t i, const std::string& what, c10::IValue value) {
    std::vector<c10::IValue> args = call_.args;
    args[i] = std::move(value);
    mutants_.push_back({call_.op.schema().arguments()[i].name() + " " + what, std::move(args)});
  }

  void spoilList(size_t i, const std::vector<at::Tensor>& list, const Changes& changesOf) {
    const auto asList = [](const std::vector<at::Tensor>& tensors) {
      c10::List<at::Tensor> made;
      for (const at::Tensor& tensor : tensors) made.push_back(tensor);
      return made;
    };
    for (size_t k = 0; k < list.size(); ++k) {
      if (!list[k].defined()) continue;
      for (const auto& [what, change] : changesOf(list[k])) {
        std::vector<at::Tensor> other = list;
        other[k] = change(list[k]);
        add(i, "[" + std::to_string(k) + "] " + what, asList(other));
      }
    }
    if (list.empty()) return;
    add(i, "lacks its last", asList({list.begin(), list.end() - 1}));
    add(i, "is an empty list", asList({}));
    std::vector<at::Tensor> longer = list;
    longer.push_back(list.back());
    add(i, "has its last twice", asList(longer));
  }

  void spoilOptionalList(size_t i, const Changes& changesOf) {
    const auto list = call_.args[i].toOptionalTensorVector();
    for (size_t k = 0; k < list.size(); ++k) {
      if (!list[k] || !list[k]->defined()) continue;
      for (const auto& [what, change] : changesOf(*list[k])) {
        c10::List<std::optional<at::Tensor>> other;
        for (size_t l = 0; l < list.size(); ++l) {
          other.push_back(l == k ? std::optional(change(*list[l])) : list[l]);
        }
        add(i, "[" + std::to_string(k) + "] " + what, other);
      }
    }
  }

  void spoilIntegers(size_t i, const std::vector<int64_t>& list) {
    for (size_t k = 0; k < list.size(); ++k) {
      for (const int64_t other : otherIntegers(list[k])) {
        std::vector<int64_t> changed = list;
        changed[k] = other;
        add(i, "[" + std::to_string(k) + "] is " + text(other), changed);
      }
    }
    add(i, "is an empty list", std::vector<int64_t>());
    if (list.empty()) return;
    add(i, "lacks its last", std::vector<int64_t>(list.begin(), list.end() - 1));
    std::vector<int64_t> longer = list;
    longer.push_back(list.back());
    add(i, "has its last twice", longer);
  }

  const KeptCall& call_;
  std::vector<CallMutant> mutants_;
};

}  // namespace

std::vector<c10::IValue> withTensors(llvm::ArrayRef<c10::IValue> args, const Change& change) {
  std::vector<std::pair<at::Tensor, at::Tensor>> made;
  const auto replaced = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || runtime::isWrappedNumber(tensor)) return tensor;
    for (const auto& [from, to] : made) {
      if (from.is_same(tensor)) return to;
    }
    made.emplace_back(tensor, change(tensor));
    return made.back().second;
  };
  std::vector<c10::IValue> result;
  for (const c10::IValue& value : args) {
    if (value.isTensor()) {
      result.emplace_back(replaced(value.toTensor()));
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(replaced(tensor));
      result.emplace_back(list);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& tensor : value.toOptionalTensorVector()) {
        list.push_back(tensor ? std::optional(replaced(*tensor)) : tensor);
      }
      result.emplace_back(list);
    } else {
      result.push_back(value);
    }
  }
  return result;
}

namespace {

/// None when the argument is of a kind that is not guessed.
std::optional<c10::IValue> guess(const c10::Argument& argument, const at::Tensor& tensor,
                                 int64_t number) {
  if (argument.default_value()) return *argument.default_value();
  const auto two = [&] {
    c10::List<at::Tensor> list;
    for (int i = 0; i < 2; ++i) list.push_back(tensor.clone());
    return list;
  };
  switch (argument.type()->kind()) {
    case c10::TypeKind::TensorType:
      return tensor.clone();
    case c10::TypeKind::OptionalType:
      return c10::IValue();
    case c10::TypeKind::IntType:
      return number;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::NumberType:
      return 0.5;
    case c10::TypeKind::BoolType:
      return true;
    case c10::TypeKind::ListType: {
      const auto element = argument.type()->expectRef<c10::ListType>().getElementType()->kind();
      if (element == c10::TypeKind::TensorType) return two();
      if (element == c10::TypeKind::IntType) return std::vector<int64_t>{number, number};
      if (element == c10::TypeKind::BoolType) return c10::List<bool>({true, true, true});
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<KeptCall> guessCalls(const c10::OperatorHandle& op) {
  const std::vector<at::Tensor> tensors = {at::rand({4, 4}), at::rand({2, 4, 4, 4}),
                                           at::ones({4, 4}, at::kLong), at::ones({4, 4}, at::kBool),
                                           at::rand({})};
  std::vector<KeptCall> calls;
  for (const at::Tensor& tensor : tensors) {
    for (const int64_t number : {int64_t{1}, int64_t{2}}) {
      KeptCall call{op, {}};
      for (const c10::Argument& argument : op.schema().arguments()) {
        std::optional<c10::IValue> value = guess(argument, tensor, number);
        if (!value) return {};
        call.args.push_back(std::move(*value));
      }
      calls.push_back(std::move(call));
    }
  }
  return calls;
}

std::vector<CallMutant> spoilShapes(const KeptCall& call) {
  Spoiler spoiler(call);
  for (size_t i = 0; i < call.args.size(); ++i) {
    spoiler.spoilTensors(i, shapeChanges);
    spoiler.spoilNumbers(i);
  }
  return spoiler.take();
}

std::vector<CallMutant> spoilValues(const KeptCall& call) {
  Spoiler spoiler(call);
  for (size_t i = 0; i < call.args.size(); ++i) spoiler.spoilTensors(i, valueChanges);
  return spoiler.take();
}

}  // namespace stowage::tests
