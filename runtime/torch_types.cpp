// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch_types.h"

#include <array>
#include <cassert>
#include <utility>

namespace stowage::runtime {
namespace {

using ir::DType;
using enum c10::ScalarType;

constexpr std::array<std::pair<c10::ScalarType, DType>, 14> kTypes = {{
    {Double, DType::kF64},
    {Float, DType::kF32},
    {Half, DType::kF16},
    {BFloat16, DType::kBF16},
    {Float8_e4m3fn, DType::kF8E4M3},
    {Float8_e5m2, DType::kF8E5M2},
    {Long, DType::kI64},
    {Int, DType::kI32},
    {Short, DType::kI16},
    {Char, DType::kI8},
    {Byte, DType::kU8},
    {Bool, DType::kBool},
    {ComplexFloat, DType::kC64},
    {ComplexDouble, DType::kC128},
}};

constexpr std::array<std::pair<c10::MemoryFormat, const char*>, 4> kFormats = {{
    {c10::MemoryFormat::Contiguous, "contiguous"},
    {c10::MemoryFormat::Preserve, "preserve"},
    {c10::MemoryFormat::ChannelsLast, "channels_last"},
    {c10::MemoryFormat::ChannelsLast3d, "channels_last_3d"},
}};

}  // namespace

std::optional<DType> findDType(c10::ScalarType type) {
  for (const auto& [torchType, dtype] : kTypes) {
    if (torchType == type) return dtype;
  }
  return std::nullopt;
}

c10::ScalarType scalarType(DType dtype) {
  for (const auto& [torchType, known] : kTypes) {
    if (known == dtype) return torchType;
  }
  assert(false && "every dtype of the IR is in the table");
  return Undefined;
}

const char* memoryFormatName(c10::MemoryFormat format) {
  for (const auto& [known, name] : kFormats) {
    if (known == format) return name;
  }
  assert(false && "a memory format that no tensor has");
  return "";
}

std::optional<c10::MemoryFormat> findMemoryFormat(llvm::StringRef name) {
  for (const auto& [format, known] : kFormats) {
    if (name == known) return format;
  }
  return std::nullopt;
}

const char* findLayoutName(c10::Layout layout) {
  return layout == c10::Layout::Strided ? "strided" : nullptr;
}

}  // namespace stowage::runtime
