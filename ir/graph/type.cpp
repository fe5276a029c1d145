// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/type.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace stowage::ir {

namespace {

struct DTypeRow {
  DType dtype;
  const char* name;
  int64_t bytes;
};

// In the order of the enumeration.
constexpr std::array<DTypeRow, 15> kDTypes = {{{DType::kF64, "f64", 8},
                                               {DType::kF32, "f32", 4},
                                               {DType::kF16, "f16", 2},
                                               {DType::kBF16, "bf16", 2},
                                               {DType::kF8E4M3, "f8e4m3", 1},
                                               {DType::kF8E5M2, "f8e5m2", 1},
                                               {DType::kI64, "i64", 8},
                                               {DType::kI32, "i32", 4},
                                               {DType::kI16, "i16", 2},
                                               {DType::kI8, "i8", 1},
                                               {DType::kU8, "u8", 1},
                                               {DType::kBool, "bool", 1},
                                               {DType::kC64, "c64", 8},
                                               {DType::kC128, "c128", 16},
                                               {DType::kU64, "u64", 8}}};

constexpr bool rowsFollowTheEnumeration() {
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    if (static_cast<size_t>(kDTypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(rowsFollowTheEnumeration());

const DTypeRow& row(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

constexpr std::array<const char*, 3> kSpaceNames = {"device", "host", "disk"};

}  // namespace

const char* dtypeName(DType dtype) { return row(dtype).name; }

std::optional<DType> findDType(llvm::StringRef name) {
  for (const DTypeRow& candidate : kDTypes) {
    if (name == candidate.name) return candidate.dtype;
  }
  return std::nullopt;
}

int64_t elementBytes(DType dtype) { return row(dtype).bytes; }

const char* spaceName(Space space) { return kSpaceNames[static_cast<size_t>(space)]; }

std::optional<Space> findSpace(llvm::StringRef name) {
  for (size_t i = 0; i < kSpaceNames.size(); ++i) {
    if (name == kSpaceNames[i]) return static_cast<Space>(i);
  }
  return std::nullopt;
}

int64_t TensorType::numElements() const {
  Bytes product(1);  // the checked multiplication of quantities
  for (const int64_t size : sizes) product = product * size;
  return product.value();
}

bool TensorType::isContiguous() const {
  assert(sizes.size() == strides.size() && "one stride per size");
  if (numElements() == 0) return true;
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

bool TensorType::isDense() const {
  assert(sizes.size() == strides.size() && "one stride per size");
  if (numElements() == 0) return true;
  llvm::SmallVector<std::pair<int64_t, int64_t>, 4> dimensions;  // stride, size
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1) dimensions.emplace_back(strides[i], sizes[i]);
  }
  std::sort(dimensions.begin(), dimensions.end());
  int64_t expected = 1;
  for (const auto& [stride, size] : dimensions) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

bool TensorType::covers(Bytes storage) const {
  return offset == 0 && Bytes(elementBytes(dtype)) * numElements() == storage && isDense();
}

Bytes TensorType::extentBytes() const {
  const std::optional<Bytes> extent = findExtentBytes();
  assert(extent && "a malformed tensor type has no extent");
  return extent ? *extent : Bytes();
}

std::optional<Bytes> TensorType::findExtentBytes() const {
  if (sizes.size() != strides.size() || offset < 0) return std::nullopt;
  if (!findContiguousStrides(sizes)) return std::nullopt;
  int64_t last = offset;
  bool empty = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] < 0) return std::nullopt;
    empty = empty || sizes[i] == 0;
    int64_t reach = 0;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach)) return std::nullopt;
    if (__builtin_add_overflow(last, reach, &last)) return std::nullopt;
  }
  if (empty) return Bytes(0);
  int64_t bytes = 0;
  if (__builtin_add_overflow(last, 1, &last)) return std::nullopt;
  if (__builtin_mul_overflow(last, elementBytes(dtype), &bytes)) return std::nullopt;
  return Bytes(bytes);
}

std::string listText(llvm::ArrayRef<int64_t> numbers) {
  std::string text = "[";
  for (const int64_t number : numbers) {
    text += (text.size() > 1 ? "," : "") + std::to_string(number);
  }
  return text + "]";
}

std::optional<llvm::SmallVector<int64_t, 4>> findContiguousStrides(llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<int64_t, 4> strides(sizes.size(), 1);
  int64_t below = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] < 0) return std::nullopt;
    strides[i] = below;
    if (__builtin_mul_overflow(below, sizes[i] > 0 ? sizes[i] : 1, &below)) return std::nullopt;
  }
  return strides;
}

llvm::SmallVector<int64_t, 4> contiguousStrides(llvm::ArrayRef<int64_t> sizes) {
  auto strides = findContiguousStrides(sizes);
  assert(strides && "sizes of a malformed type");
  return strides ? std::move(*strides) : llvm::SmallVector<int64_t, 4>();
}

}  // namespace stowage::ir
