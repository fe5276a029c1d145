// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2/pt2_arguments.h"

#include <ATen/core/jit_type.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "ir/base/overloaded.h"
#include "runtime/capture/ops/encode_argument.h"
#include "runtime/torch/torch_boundary.h"

namespace stowage::runtime {
namespace {

using c10::TypeKind;
using MaybeArgument = std::optional<ir::Argument>;  // none: not what the schema wants

const char* describe(const Pt2Value& value) {
  return std::visit(
      ir::Overloaded{
          [](ir::NoneArg) { return "none"; }, [](const Pt2TensorRef&) { return "a tensor"; },
          [](const Pt2TensorList&) { return "a list of tensors"; },
          [](bool) { return "true or false"; }, [](int64_t) { return "an integer"; },
          [](double) { return "a number"; }, [](const std::string&) { return "a string"; },
          [](const ir::ComplexArg&) { return "a complex number"; },
          [](const ir::EnumArg&) { return "a name"; },
          [](const ir::NumberList&) { return "a list of numbers"; },
          [](const Pt2IntegerResult&) { return "a result"; }},
      value);
}

bool isNone(const Pt2Value& value) {
  const auto* tensor = std::get_if<Pt2TensorRef>(&value);
  return std::holds_alternative<ir::NoneArg>(value) || (tensor != nullptr && tensor->tensor < 0);
}

bool isTensor(const c10::Type& type) {
  if (type.kind() != TypeKind::OptionalType) return type.kind() == TypeKind::TensorType;
  return type.expectRef<c10::OptionalType>().getElementType()->kind() == TypeKind::TensorType;
}

bool isInteger(TypeKind kind) { return kind == TypeKind::IntType || kind == TypeKind::SymIntType; }

bool isFloat(TypeKind kind) {
  return kind == TypeKind::FloatType || kind == TypeKind::SymFloatType;
}

/// The kind of name that the schema's type wants; null for other types.
const char* enumKind(TypeKind kind) {
  switch (kind) {
    case TypeKind::ScalarTypeType:
      return "dtype";
    case TypeKind::LayoutType:
      return "layout";
    case TypeKind::MemoryFormatType:
      return "memory_format";
    case TypeKind::DeviceObjType:
      return "device";
    default:
      return nullptr;
  }
}

class Converter {
 public:
  explicit Converter(Pt2ValueOf valueOf) : valueOf_(valueOf) {}

  ir::Expected<ir::Argument> convert(const Pt2Value& value, const c10::Argument& argument) {
    const bool optional = argument.real_type()->kind() == TypeKind::OptionalType;
    const c10::TypePtr type =
        optional ? argument.real_type()->expectRef<c10::OptionalType>().getElementType()
                 : argument.real_type();
    missing_ = -1;
    MaybeArgument result =
        optional && isNone(value) ? ir::NoneArg{} : convertTo(value, *type, argument.N());
    const std::string where = "argument '" + argument.name() + "'";
    if (missing_ >= 0) {
      return ir::makeError(ir::ErrorCode::kParse,
                           where + " is a tensor that no node before this one makes");
    }
    if (result) return std::move(*result);
    return ir::makeError(ir::ErrorCode::kParse, where + ": found " + describe(value) +
                                                    ", expected " + argument.real_type()->str());
  }

 private:
  MaybeArgument convertTo(const Pt2Value& value, const c10::Type& type,
                          std::optional<int32_t> length) {
    const TypeKind kind = type.kind();
    if (kind == TypeKind::TensorType) return convertTensor(value);
    if (kind == TypeKind::ListType) {
      return convertList(value, *type.expectRef<c10::ListType>().getElementType(), length);
    }
    if (const char* wanted = enumKind(kind)) {
      const auto* name = std::get_if<ir::EnumArg>(&value);
      return name != nullptr && name->kind == wanted ? MaybeArgument(*name) : std::nullopt;
    }
    if (kind == TypeKind::StringType) {
      const auto* text = std::get_if<std::string>(&value);
      return text != nullptr ? MaybeArgument(*text) : std::nullopt;
    }
    return convertNumber(value, kind);
  }

  static MaybeArgument convertNumber(const Pt2Value& value, TypeKind kind) {
    const bool any = kind == TypeKind::NumberType;
    if (const auto* flag = std::get_if<bool>(&value)) {
      return any || kind == TypeKind::BoolType ? MaybeArgument(*flag) : std::nullopt;
    }
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      if (any || isInteger(kind)) return *integer;
      return isFloat(kind) ? MaybeArgument(static_cast<double>(*integer)) : std::nullopt;
    }
    if (const auto* number = std::get_if<double>(&value)) {
      return any || isFloat(kind) ? MaybeArgument(*number) : std::nullopt;
    }
    if (const auto* number = std::get_if<ir::ComplexArg>(&value); number != nullptr && any) {
      return *number;
    }
    return std::nullopt;
  }

  /// A number stands for a tensor of one element that takes part in promotion as a number.
  /// None is an undefined tensor, also where the schema wants one.
  MaybeArgument convertTensor(const Pt2Value& value) {
    if (isNone(value)) return ir::NoneArg{};
    if (const auto* reference = std::get_if<Pt2TensorRef>(&value)) {
      return ir::ValueArg{find(*reference)};
    }
    if (const auto* flag = std::get_if<bool>(&value)) {
      return ir::WrappedNumberArg{.dtype = ir::DType::kBool, .value = int64_t{*flag}};
    }
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      return ir::WrappedNumberArg{.dtype = ir::DType::kI64, .value = *integer};
    }
    if (const auto* number = std::get_if<double>(&value)) {
      return ir::WrappedNumberArg{.dtype = ir::DType::kF64, .value = *number};
    }
    return std::nullopt;
  }

  MaybeArgument convertList(const Pt2Value& value, const c10::Type& element,
                            std::optional<int32_t> length) {
    const TypeKind kind = element.kind();
    const bool ofTensors = isTensor(element);
    const auto* numbers = std::get_if<ir::NumberList>(&value);
    const auto* tensors = std::get_if<Pt2TensorList>(&value);
    // The archive's empty lists do not say of what.
    const bool empty =
        (numbers != nullptr && numbers->empty()) || (tensors != nullptr && tensors->empty());
    if (ofTensors && empty) return ir::ValueList{};
    if (ofTensors) return tensors == nullptr ? std::nullopt : convertTensors(*tensors, kind);
    if (empty) return ir::NumberList{};
    if (numbers != nullptr) return convertNumbers(*numbers, kind);
    // One number stands for all of a list of known length.
    const MaybeArgument single = convertNumber(value, kind);
    if (!single || !length || *length <= 0) return std::nullopt;
    return repeat(*single, *length);
  }

  MaybeArgument convertTensors(const Pt2TensorList& tensors, TypeKind kind) {
    ir::ValueList list;
    for (const Pt2TensorRef& tensor : tensors) {
      if (tensor.tensor < 0 && kind != TypeKind::OptionalType) return std::nullopt;
      list.push_back({tensor.tensor < 0 ? ir::ValueId() : find(tensor)});
    }
    return list;
  }

  static MaybeArgument convertNumbers(const ir::NumberList& numbers, TypeKind kind) {
    ir::NumberList list;
    for (const auto& number : numbers) {
      const MaybeArgument converted = std::visit(
          ir::Overloaded{[](const ir::ScalarArg&) -> MaybeArgument { return std::nullopt; },
                         [&](const auto& plain) { return convertNumber(plain, kind); }},
          number);
      if (!converted || !append(*converted, list)) return std::nullopt;
    }
    return list;
  }

  static MaybeArgument repeat(const ir::Argument& number, int32_t length) {
    ir::NumberList list;
    for (int32_t i = 0; i < length; ++i) {
      if (!append(number, list)) return std::nullopt;
    }
    return list;
  }

  static bool append(const ir::Argument& number, ir::NumberList& list) {
    if (const auto* flag = std::get_if<bool>(&number)) {
      list.emplace_back(*flag);
    } else if (const auto* integer = std::get_if<int64_t>(&number)) {
      list.emplace_back(*integer);
    } else if (const auto* real = std::get_if<double>(&number)) {
      list.emplace_back(*real);
    } else {
      return false;
    }
    return true;
  }

  ir::ValueId find(const Pt2TensorRef& reference) {
    const ir::ValueId value = valueOf_(reference.tensor);
    if (!value.isValid()) missing_ = reference.tensor;
    return value;
  }

  Pt2ValueOf valueOf_;
  int32_t missing_ = -1;
};

ir::Expected<ir::Argument> defaultOf(const c10::Argument& argument) {
  if (!argument.default_value()) {
    return ir::makeError(ir::ErrorCode::kParse, "argument '" + argument.name() + "' is missing");
  }
  return callTorch("argument '" + argument.name() + "'", [&] {
    return encodeArgument(*argument.default_value(), argument,
                          [](const at::Tensor&) { return ir::ValueId(); });
  });
}

}  // namespace

ir::Expected<std::vector<ir::Argument>> convertPt2Arguments(const std::vector<Pt2Argument>& given,
                                                            const c10::FunctionSchema& schema,
                                                            Pt2ValueOf valueOf) {
  std::vector<const Pt2Value*> values(schema.arguments().size(), nullptr);
  for (const Pt2Argument& argument : given) {
    const std::optional<int> index = schema.argumentIndexWithName(argument.name);
    if (!index) {
      return ir::makeError(ir::ErrorCode::kParse, "the op has no argument '" + argument.name + "'");
    }
    const Pt2Value*& value = values[static_cast<size_t>(*index)];
    if (value != nullptr) {
      return ir::makeError(ir::ErrorCode::kParse,
                           "argument '" + argument.name + "' is given twice");
    }
    value = &argument.value;
  }
  Converter converter(valueOf);
  std::vector<ir::Argument> arguments;
  arguments.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const c10::Argument& wanted = schema.arguments()[i];
    ir::Expected<ir::Argument> argument =
        values[i] == nullptr ? defaultOf(wanted) : converter.convert(*values[i], wanted);
    if (!argument) return argument.takeError();
    arguments.push_back(std::move(*argument));
  }
  return arguments;
}

}  // namespace stowage::runtime
