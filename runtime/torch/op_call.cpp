// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/op_call.h"

#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ir/base/overloaded.h"
#include "ir/graph/op_table.h"
#include "runtime/torch/torch_boundary.h"
#include "runtime/torch/torch_types.h"
#include "runtime/torch/wrapped_number.h"

namespace stowage::runtime {

namespace {

using c10::IValue;
using c10::TypeKind;

// Optional[T] is T for everything but "none".
c10::TypePtr withoutOptional(const c10::TypePtr& type) {
  if (type->kind() != TypeKind::OptionalType) return type;
  return type->expectRef<c10::OptionalType>().getElementType();
}

ir::Error wrongArgument(const std::string& found, const c10::Type& expected) {
  return ir::makeError(ir::ErrorCode::kInvalidIr,
                       "found " + found + ", expected " + expected.str());
}

ir::Expected<IValue> convertEnum(const ir::EnumArg& argument) {
  const auto unknown = [&] {
    return ir::makeError(ir::ErrorCode::kInvalidIr,
                         "found unknown " + argument.kind + " '" + argument.text + "'");
  };
  if (argument.kind == "dtype") {
    const auto dtype = ir::findDType(argument.text);
    if (!dtype) return unknown();
    return IValue(toScalarType(*dtype));
  }
  if (argument.kind == "device") {
    return callTorch("device", [&] { return IValue(c10::Device(argument.text)); });
  }
  if (argument.kind == "layout" && argument.text == "strided") {
    return IValue(c10::Layout::Strided);
  }
  if (argument.kind == "memory_format") {
    static const std::pair<const char*, c10::MemoryFormat> kFormats[] = {
        {"contiguous", c10::MemoryFormat::Contiguous},
        {"preserve", c10::MemoryFormat::Preserve},
        {"channels_last", c10::MemoryFormat::ChannelsLast},
        {"channels_last_3d", c10::MemoryFormat::ChannelsLast3d}};
    for (const auto& [name, format] : kFormats) {
      if (argument.text == name) return IValue(format);
    }
  }
  return unknown();
}

const char* kindOf(const ir::Argument& argument) {
  return std::visit(
      ir::Overloaded{[](const ir::NoneArg&) { return "none"; },
                     [](bool) { return "true or false"; }, [](int64_t) { return "an integer"; },
                     [](double) { return "a number"; },
                     [](const std::string&) { return "a string"; },
                     [](const ir::ComplexArg&) { return "a complex number"; },
                     [](const ir::ScalarArg&) { return "a step scalar"; },
                     [](const ir::EnumArg& name) { return name.kind.c_str(); },
                     [](const ir::WrappedNumberArg&) { return "a number as a tensor"; },
                     [](const ir::ValueArg&) { return "a tensor"; },
                     [](const ir::ValueList&) { return "a list of tensors"; },
                     [](const ir::NumberList&) { return "a list of numbers"; }},
      argument);
}

/// Kernels take what they are given for what the schema says: an integer for an element type, say.
bool fits(const ir::Argument& argument, const c10::Type& type) {
  const auto is = [&]<typename T>(std::type_identity<T>) {
    return std::holds_alternative<T>(argument);
  };
  const auto* name = std::get_if<ir::EnumArg>(&argument);
  const bool isInteger =
      is(std::type_identity<int64_t>()) || is(std::type_identity<ir::ScalarArg>());
  const bool isReal = isInteger || is(std::type_identity<double>());
  switch (type.kind()) {
    case TypeKind::TensorType:
      return is(std::type_identity<ir::ValueArg>()) ||
             is(std::type_identity<ir::WrappedNumberArg>());
    case TypeKind::ListType:
      return is(std::type_identity<ir::ValueList>()) || is(std::type_identity<ir::NumberList>());
    case TypeKind::BoolType:
      return is(std::type_identity<bool>());
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return isInteger;
    case TypeKind::FloatType:
      return isReal;
    case TypeKind::NumberType:
      return isReal || is(std::type_identity<bool>()) || is(std::type_identity<ir::ComplexArg>());
    case TypeKind::StringType:
      return is(std::type_identity<std::string>());
    case TypeKind::ScalarTypeType:
      return name != nullptr && name->kind == "dtype";
    case TypeKind::LayoutType:
      return name != nullptr && name->kind == "layout";
    case TypeKind::MemoryFormatType:
      return name != nullptr && name->kind == "memory_format";
    case TypeKind::DeviceObjType:
      return name != nullptr && name->kind == "device";
    default:
      return false;
  }
}

IValue toIValue(const ScalarValue& value) {
  return value.isInteger ? IValue(value.integer) : IValue(value.value);
}

class StackMaker {
 public:
  StackMaker(llvm::ArrayRef<ir::StepScalar> scalars, OpCall& call, TensorOf tensorOf)
      : scalars_(scalars), call_(call), tensorOf_(tensorOf) {}

  ir::Error push(const ir::Argument& argument, const c10::TypePtr& schemaType) {
    // Where a tensor must be, none is an undefined one (the bias of an attention without any).
    if (std::holds_alternative<ir::NoneArg>(argument) &&
        schemaType->kind() == TypeKind::TensorType) {
      call_.stack.emplace_back(at::Tensor());
      return ir::success();
    }
    const bool isNone = std::holds_alternative<ir::NoneArg>(argument);
    if (isNone && schemaType->kind() != TypeKind::OptionalType) {
      return wrongArgument("none", *schemaType);
    }
    auto value = convert(argument, withoutOptional(schemaType));
    if (!value) return value.takeError();
    call_.stack.push_back(std::move(*value));
    return ir::success();
  }

 private:
  ir::Expected<IValue> convert(const ir::Argument& argument, const c10::TypePtr& type) {
    if (std::holds_alternative<ir::NoneArg>(argument)) return IValue();
    if (!fits(argument, *type)) return wrongArgument(kindOf(argument), *type);
    if (const auto* flag = std::get_if<bool>(&argument)) return IValue(*flag);
    if (const auto* integer = std::get_if<int64_t>(&argument)) {
      // A literal without a point may stand for a float.
      if (type->kind() == TypeKind::FloatType) return IValue(static_cast<double>(*integer));
      return IValue(*integer);
    }
    if (const auto* number = std::get_if<double>(&argument)) return IValue(*number);
    if (const auto* text = std::get_if<std::string>(&argument)) return IValue(*text);
    if (const auto* complex = std::get_if<ir::ComplexArg>(&argument)) {
      return IValue(c10::complex<double>(complex->real, complex->imaginary));
    }
    if (const auto* scalar = std::get_if<ir::ScalarArg>(&argument)) {
      return scalarAt(-1, scalar->scalar);
    }
    if (const auto* name = std::get_if<ir::EnumArg>(&argument)) return convertEnum(*name);
    if (const auto* wrapped = std::get_if<ir::WrappedNumberArg>(&argument)) {
      return convertWrapped(*wrapped);
    }
    if (const auto* value = std::get_if<ir::ValueArg>(&argument)) {
      return IValue(value->value.isValid() ? tensorOf_(value->value) : at::Tensor());
    }
    if (const auto* values = std::get_if<ir::ValueList>(&argument)) {
      return convertValues(*values, type);
    }
    return convertNumbers(std::get<ir::NumberList>(argument), type);
  }

  // As captured; every launch puts the step's value in its place.
  IValue scalarAt(int32_t element, ir::ScalarId id) {
    call_.scalars.push_back({call_.stack.size(), element, id});
    const ir::StepScalar& scalar = scalars_[id.index()];
    return toIValue({scalar.isInteger, scalar.value, scalar.integer});
  }

  IValue convertWrapped(const ir::WrappedNumberArg& wrapped) {
    ScalarValue value;
    if (const auto* integer = std::get_if<int64_t>(&wrapped.value)) {
      value = {true, 0, *integer};
    } else if (const auto* number = std::get_if<double>(&wrapped.value)) {
      value.value = *number;
    } else {
      const ir::ScalarId id = std::get<ir::ScalarId>(wrapped.value);
      const ir::StepScalar& scalar = scalars_[id.index()];
      value = {scalar.isInteger, scalar.value, scalar.integer};
      call_.scalars.push_back({call_.stack.size(), -1, id});
    }
    return makeWrappedNumber(toScalarType(wrapped.dtype), value);
  }

  ir::Expected<IValue> convertValues(const ir::ValueList& values, const c10::TypePtr& type) {
    if (type->kind() != TypeKind::ListType) return wrongArgument("a list of tensors", *type);
    const c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
    if (element->kind() == TypeKind::OptionalType) {
      c10::List<std::optional<at::Tensor>> list;
      for (const ir::ValueArg& value : values) {
        value.value.isValid() ? list.push_back(tensorOf_(value.value))
                              : list.push_back(std::nullopt);
      }
      return IValue(std::move(list));
    }
    c10::List<at::Tensor> list;
    for (const ir::ValueArg& value : values) {
      list.push_back(value.value.isValid() ? tensorOf_(value.value) : at::Tensor());
    }
    return IValue(std::move(list));
  }

  ir::Expected<IValue> convertNumbers(const ir::NumberList& numbers, const c10::TypePtr& type) {
    if (type->kind() != TypeKind::ListType) return wrongArgument("a list of numbers", *type);
    // SymInt lists are lists of integers here: nothing is symbolic.
    c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
    if (element->kind() == TypeKind::SymIntType) element = c10::IntType::get();
    const bool isFloat = element->kind() == TypeKind::FloatType;
    c10::impl::GenericList list(element);
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (const auto* flag = std::get_if<bool>(&numbers[i])) {
        list.push_back(IValue(*flag));
      } else if (const auto* integer = std::get_if<int64_t>(&numbers[i])) {
        list.push_back(isFloat ? IValue(static_cast<double>(*integer)) : IValue(*integer));
      } else if (const auto* number = std::get_if<double>(&numbers[i])) {
        list.push_back(IValue(*number));
      } else {
        const auto& scalar = std::get<ir::ScalarArg>(numbers[i]);
        list.push_back(scalarAt(static_cast<int32_t>(i), scalar.scalar));
      }
    }
    return typedList(std::move(list), element);
  }

  // Lists of plain numbers have representations of their own.
  static IValue typedList(c10::impl::GenericList list, const c10::TypePtr& element) {
    switch (element->kind()) {
      case TypeKind::IntType:
        return IValue(c10::impl::toTypedList<int64_t>(std::move(list)));
      case TypeKind::FloatType:
        return IValue(c10::impl::toTypedList<double>(std::move(list)));
      case TypeKind::BoolType:
        return IValue(c10::impl::toTypedList<bool>(std::move(list)));
      default:
        return IValue(std::move(list));
    }
  }

  llvm::ArrayRef<ir::StepScalar> scalars_;
  OpCall& call_;
  TensorOf tensorOf_;
};

ir::Error fillStack(llvm::ArrayRef<ir::StepScalar> scalars, const ir::Node& node, OpCall& call,
                    TensorOf tensorOf) {
  const auto& arguments = call.op.schema().arguments();
  if (node.args.size() > arguments.size()) {
    return ir::makeError(ir::ErrorCode::kInvalidIr, "found " + std::to_string(node.args.size()) +
                                                        " arguments, expected " +
                                                        std::to_string(arguments.size()));
  }
  StackMaker maker(scalars, call, tensorOf);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i >= node.args.size()) {
      if (!arguments[i].default_value()) {
        return ir::makeError(ir::ErrorCode::kInvalidIr,
                             "argument '" + arguments[i].name() + "' is missing");
      }
      call.stack.push_back(*arguments[i].default_value());
    } else if (ir::Error error = maker.push(node.args[i], arguments[i].real_type())) {
      return ir::makeError(ir::ErrorCode::kInvalidIr, "argument '" + arguments[i].name() +
                                                          "': " + ir::describe(std::move(error)));
    }
  }
  return ir::success();
}

}  // namespace

ir::Expected<OpCall> prepareCall(const ir::Graph& graph, ir::NodeId node, CallForm form,
                                 TensorOf tensorOf) {
  const ir::Node& called = graph.node(node);
  const bool replay = form == CallForm::kReplay;
  auto handle = findOperator(replay ? ir::lookUpOp(called.op).replayForm : called.op);
  if (!handle) return handle.takeError();
  OpCall call{*handle, {}, {}};
  const auto givenTensor = [&](ir::ValueId value) {
    const bool isWritten =
        std::any_of(called.writes.begin(), called.writes.end(),
                    [&](const ir::Node::Write& write) { return write.value == value; });
    return replay && isWritten ? at::Tensor() : tensorOf(value);
  };
  const std::string where = graph.describeNode(node);
  // A list refuses elements of another type by throwing.
  if (ir::Error error =
          callTorch(where, [&] { return fillStack(graph.scalars(), called, call, givenTensor); })) {
    return ir::makeError(ir::ErrorCode::kInvalidIr, where + ": " + ir::describe(std::move(error)));
  }
  return call;
}

ir::Expected<OpCall> prepareCall(const ir::Node& node, TensorOf tensorOf) {
  auto handle = findOperator(node.op);
  if (!handle) return handle.takeError();
  OpCall call{*handle, {}, {}};
  if (ir::Error error =
          callTorch("arguments", [&] { return fillStack({}, node, call, tensorOf); })) {
    return error;
  }
  return call;
}

std::vector<IValue> makeStack(const OpCall& call, llvm::ArrayRef<ScalarValue> scalars) {
  std::vector<IValue> stack = call.stack;
  for (const ScalarSlot& slot : call.scalars) {
    const ScalarValue& value = scalars[slot.scalar.index()];
    IValue& argument = stack[slot.argument];
    if (argument.isTensor()) {
      setWrappedNumber(argument.toTensor(), value);
    } else if (slot.element < 0) {
      argument = toIValue(value);
    } else {
      // The list is shared with the prepared stack: one thread launches a call at a time.
      setListElement(argument, static_cast<size_t>(slot.element), toIValue(value));
    }
  }
  return stack;
}

void forEachResult(const std::vector<IValue>& stack,
                   llvm::function_ref<void(const at::Tensor&)> visit) {
  for (const IValue& value : stack) {
    if (value.isTensor()) {
      visit(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& element : value.toTensorVector()) visit(element);
    }
  }
}

}  // namespace stowage::runtime
