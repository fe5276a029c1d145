// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/torch_types.h"

#include <ATen/ops/empty_strided.h>

#include <array>
#include <utility>

namespace stowage::runtime {

namespace {

using ir::DType;

constexpr std::array<std::pair<DType, c10::ScalarType>, 15> kTypes = {{
    {DType::kF64, c10::ScalarType::Double},
    {DType::kF32, c10::ScalarType::Float},
    {DType::kF16, c10::ScalarType::Half},
    {DType::kBF16, c10::ScalarType::BFloat16},
    {DType::kF8E4M3, c10::ScalarType::Float8_e4m3fn},
    {DType::kF8E5M2, c10::ScalarType::Float8_e5m2},
    {DType::kI64, c10::ScalarType::Long},
    {DType::kI32, c10::ScalarType::Int},
    {DType::kI16, c10::ScalarType::Short},
    {DType::kI8, c10::ScalarType::Char},
    {DType::kU8, c10::ScalarType::Byte},
    {DType::kBool, c10::ScalarType::Bool},
    {DType::kC64, c10::ScalarType::ComplexFloat},
    {DType::kC128, c10::ScalarType::ComplexDouble},
    {DType::kU64, c10::ScalarType::UInt64},
}};

}  // namespace

c10::ScalarType toScalarType(DType dtype) {
  for (const auto& [own, theirs] : kTypes) {
    if (own == dtype) return theirs;
  }
  return c10::ScalarType::Undefined;
}

std::optional<DType> toDType(c10::ScalarType type) {
  for (const auto& [own, theirs] : kTypes) {
    if (theirs == type) return own;
  }
  return std::nullopt;
}

c10::Device toDevice(ir::DeviceKind kind) {
  return kind == ir::DeviceKind::kCuda ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU);
}

at::Tensor layOutAs(const ir::TensorType& type, const at::Tensor& values) {
  const c10::IntArrayRef strides(type.strides.data(), type.strides.size());
  const bool areBytes = !values.is_conj() && !values.is_neg();
  if (values.strides() == strides && areBytes) return values;
  return at::empty_strided(values.sizes(), strides, values.options()).copy_(values);
}

bool hasLayout(const at::Tensor& tensor, const ir::TensorType& type) {
  const c10::IntArrayRef sizes = tensor.sizes();
  const c10::IntArrayRef strides(type.strides.data(), type.strides.size());
  if (tensor.numel() == 0) return true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 1 && tensor.strides()[i] != strides[i]) return false;
  }
  return c10::is_channels_last_strides_2d(sizes, strides) ==
             c10::is_channels_last_strides_2d(sizes, tensor.strides()) &&
         c10::is_channels_last_strides_3d(sizes, strides) ==
             c10::is_channels_last_strides_3d(sizes, tensor.strides());
}

ir::Expected<c10::OperatorHandle> findOperator(llvm::StringRef op) {
  const auto [space, rest] = op.split('.');
  const auto [name, overload] = rest.rsplit('.');
  const std::string qualified = (space + "::" + name).str();
  const auto found = c10::Dispatcher::singleton().findSchema(
      {qualified, overload == "default" ? "" : overload.str()});
  if (!found) {
    return ir::makeError(ir::ErrorCode::kUnsupported, "libtorch has no op '" + op.str() + "'");
  }
  return *found;
}

}  // namespace stowage::runtime
