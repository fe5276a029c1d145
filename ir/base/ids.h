// SPDX-License-Identifier: Apache-2.0
//
// Strong index types. An id is the position of a thing in the vector that owns it (storages,
// values, nodes, step scalars of a Graph; residencies and commands of a Schedule), so ids are
// dense, and nothing but that vector gives them a meaning. A default-made id is invalid.
#ifndef STOWAGE_IR_BASE_IDS_H_
#define STOWAGE_IR_BASE_IDS_H_

#include <cassert>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace stowage::ir {

template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(int32_t index) : index_(index) {}
  constexpr explicit Id(size_t index) : index_(static_cast<int32_t>(index)) {}
  constexpr bool isValid() const { return index_ >= 0; }
  /// Position in the owning vector; asserts on an invalid id.
  constexpr size_t index() const {
    assert(isValid() && "index of an invalid id");
    return static_cast<size_t>(index_);
  }
  /// The raw number, -1 when invalid. For printing and hashing.
  constexpr int32_t raw() const { return index_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  int32_t index_ = -1;
};

using StorageId = Id<struct StorageTag>;
using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct NodeTag>;
using ScalarId = Id<struct ScalarTag>;
using ScopeId = Id<struct ScopeTag>;
using ResidencyId = Id<struct ResidencyTag>;
using CommandId = Id<struct CommandTag>;

}  // namespace stowage::ir

template <typename Tag>
struct std::hash<stowage::ir::Id<Tag>> {
  size_t operator()(stowage::ir::Id<Tag> id) const noexcept {
    return std::hash<int32_t>()(id.raw());
  }
};

#endif  // STOWAGE_IR_BASE_IDS_H_
