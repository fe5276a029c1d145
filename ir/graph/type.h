// SPDX-License-Identifier: Apache-2.0
//
// What a tensor looks like, without the tensor: element type, sizes, strides, and where it starts
// in its storage. Sizes, strides and offsets are in elements; `extentBytes` turns them into bytes.
#ifndef STOWAGE_IR_GRAPH_TYPE_H_
#define STOWAGE_IR_GRAPH_TYPE_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <optional>
#include <string>

#include "ir/base/units.h"

namespace stowage::ir {

enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool,
  kC64,
  kC128,
  kU64  // seeds of attention kernels
};

/// "f32", "bf16", "i64", "bool", "c64", "f8e4m3", ...
const char* dtypeName(DType dtype);
std::optional<DType> findDType(llvm::StringRef name);
/// Bytes of one element.
int64_t elementBytes(DType dtype);

/// Where bytes can be. The planner moves storages between device, host and disk.
enum class Space : uint8_t { kDevice, kHost, kDisk };
const char* spaceName(Space space);
std::optional<Space> findSpace(llvm::StringRef name);

struct TensorType {
  DType dtype = DType::kF32;
  llvm::SmallVector<int64_t, 4> sizes;
  llvm::SmallVector<int64_t, 4> strides;  // same length as sizes
  int64_t offset = 0;                     // first element, relative to the storage's base

  friend bool operator==(const TensorType&, const TensorType&) = default;
  int64_t numElements() const;
  /// Row-major without gaps, ignoring the offset.
  bool isContiguous() const;
  /// Row-major without gaps for some order of the dimensions: no two elements at one place and none
  /// between them. Ignores the offset.
  bool isDense() const;
  /// Dense, and all of a storage of so many bytes.
  bool covers(Bytes storage) const;
  /// Bytes from the storage's base to one past the last element touched; 0 for an empty tensor.
  Bytes extentBytes() const;
  /// The same for a type that nobody has checked yet: none if sizes and strides differ in number,
  /// if something is negative, or if a product overflows.
  std::optional<Bytes> findExtentBytes() const;
};

/// "[2,3]", of sizes or strides in messages.
std::string listText(llvm::ArrayRef<int64_t> numbers);

/// Row-major strides for `sizes`; a size of 0 counts as 1, as in ATen. None if something is
/// negative or a product overflows.
std::optional<llvm::SmallVector<int64_t, 4>> findContiguousStrides(llvm::ArrayRef<int64_t> sizes);
/// The same for sizes of a type that has an extent.
llvm::SmallVector<int64_t, 4> contiguousStrides(llvm::ArrayRef<int64_t> sizes);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_GRAPH_TYPE_H_
