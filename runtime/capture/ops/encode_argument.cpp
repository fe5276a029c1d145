// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/ops/encode_argument.h"

#include <ATen/core/jit_type.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <string>
#include <utility>

#include "runtime/torch/torch_types.h"

namespace stowage::runtime {
namespace {

constexpr std::array<std::pair<c10::MemoryFormat, const char*>, 4> kMemoryFormats = {{
    {c10::MemoryFormat::Contiguous, "contiguous"},
    {c10::MemoryFormat::Preserve, "preserve"},
    {c10::MemoryFormat::ChannelsLast, "channels_last"},
    {c10::MemoryFormat::ChannelsLast3d, "channels_last_3d"},
}};

std::string memoryFormatName(c10::MemoryFormat format) {
  for (const auto& [known, name] : kMemoryFormats) {
    if (known == format) return name;
  }
  TORCH_CHECK(false, "memory format ", format, " has no name in the IR");
}

ir::WrappedNumberArg encodeWrapped(const at::Tensor& tensor) {
  const void* data = tensor.const_data_ptr();
  switch (tensor.scalar_type()) {
    case c10::ScalarType::Double:
      return {.dtype = ir::DType::kF64, .value = *static_cast<const double*>(data)};
    case c10::ScalarType::Long:
      return {.dtype = ir::DType::kI64, .value = *static_cast<const int64_t*>(data)};
    case c10::ScalarType::Bool:
      return {.dtype = ir::DType::kBool, .value = int64_t{*static_cast<const bool*>(data)}};
    default:
      TORCH_CHECK(false, "a host number became a tensor of type ", tensor.scalar_type(),
                  ", expected double, long or bool");
  }
}

ir::Argument encodeTensor(const at::Tensor& tensor, InternTensor intern) {
  if (!tensor.defined()) return ir::NoneArg{};
  if (isWrappedNumber(tensor)) return encodeWrapped(tensor);
  return ir::ValueArg{intern(tensor)};
}

ir::Argument encodeScalar(const c10::Scalar& scalar) {
  if (scalar.isBoolean()) return scalar.toBool();
  if (scalar.isIntegral(/*includeBool=*/false)) return scalar.toLong();
  if (scalar.isFloatingPoint()) return scalar.toDouble();
  const c10::complex<double> number = scalar.toComplexDouble();
  return ir::ComplexArg{number.real(), number.imag()};
}

ir::Argument encodeTensors(const c10::IValue& value, InternTensor intern) {
  ir::ValueList list;
  const auto add = [&](const at::Tensor& tensor) {
    TORCH_CHECK(!tensor.defined() || !isWrappedNumber(tensor),
                "a host number as a tensor inside a list");
    list.push_back({tensor.defined() ? intern(tensor) : ir::ValueId()});
  };
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) add(tensor);
  } else {
    for (const auto& tensor : value.toOptionalTensorVector()) add(tensor.value_or(at::Tensor()));
  }
  return list;
}

ir::NumberList encodeNumbers(const c10::IValue& value) {
  ir::NumberList list;
  for (const c10::IValue& element : value.toListRef()) {
    if (element.isBool()) {
      list.emplace_back(element.toBool());
    } else if (element.isDouble()) {
      list.emplace_back(element.toDouble());
    } else {
      list.emplace_back(element.toInt());
    }
  }
  return list;
}

ir::NumberList encodeNumberList(const c10::IValue& value) {
  ir::NumberList list;
  if (value.isIntList()) {
    for (const int64_t element : value.toIntVector()) list.emplace_back(element);
  } else if (value.isDoubleList()) {
    for (const double element : value.toDoubleVector()) list.emplace_back(element);
  } else if (value.isBoolList()) {
    for (const bool element : value.toBoolList()) list.emplace_back(element);
  } else {
    return encodeNumbers(value);
  }
  return list;
}

std::string deviceText(c10::Device device) {
  return device.is_cuda() ? "cuda:" + std::to_string(device.has_index() ? device.index() : 0)
                          : device.str();
}

/// Enumerations travel as integers; only the schema tells them from numbers.
ir::Argument encodeInteger(int64_t number, c10::TypeKind kind) {
  switch (kind) {
    case c10::TypeKind::ScalarTypeType: {
      const auto dtype = toDType(static_cast<c10::ScalarType>(number));
      TORCH_CHECK(dtype, "element type ", static_cast<c10::ScalarType>(number),
                  " has no name in the IR");
      return ir::EnumArg{"dtype", ir::dtypeName(*dtype)};
    }
    case c10::TypeKind::LayoutType:
      TORCH_CHECK(static_cast<c10::Layout>(number) == c10::Layout::Strided,
                  "a tensor that is not strided");
      return ir::EnumArg{"layout", "strided"};
    case c10::TypeKind::MemoryFormatType:
      return ir::EnumArg{"memory_format", memoryFormatName(static_cast<c10::MemoryFormat>(number))};
    default:
      return number;
  }
}

c10::TypeKind kindOf(const c10::Argument& argument) {
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  return type->kind();
}

}  // namespace

bool isWrappedNumber(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

ir::Argument encodeArgument(const c10::IValue& value, const c10::Argument& argument,
                            InternTensor intern) {
  if (value.isNone()) return ir::NoneArg{};
  if (value.isTensor()) return encodeTensor(value.toTensor(), intern);
  if (value.isTensorList() || value.isOptionalTensorList()) return encodeTensors(value, intern);
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return encodeInteger(value.toInt(), kindOf(argument));
  if (value.isScalar()) return encodeScalar(value.toScalar());
  if (value.isString()) return value.toStringRef();
  if (value.isDevice()) return ir::EnumArg{"device", deviceText(value.toDevice())};
  if (value.isList()) return encodeNumberList(value);
  TORCH_CHECK(
      !value.isGenerator(),
      "it draws from a generator of its own, whose state a plan does not keep: draw from the "
      "default one (leave `generator` out), or draw before the step");
  TORCH_CHECK(false, "argument ", argument.name(), " is ", value.tagKind(),
              ", which cannot be part of a graph");
}

}  // namespace stowage::runtime
