// SPDX-License-Identifier: Apache-2.0
//
// A copy engine of the CPU device: memory copies that take as long as a link of a given rate would.
// It sleeps until the link would have carried the next 1 MiB, then copies them. A sleeping thread
// needs no core, so copies overlap with compute even on a machine with few cores, and a step takes
// the time that the plan says.
// Without a rate it copies as fast as memory allows.
#ifndef STOWAGE_RUNTIME_THROTTLED_LINK_H_
#define STOWAGE_RUNTIME_THROTTLED_LINK_H_

#include <cstddef>
#include <optional>

#include "ir/target.h"
#include "ir/units.h"

namespace stowage::runtime {

inline constexpr Bytes kLinkPiece{int64_t{1} << 20};

class ThrottledLink {
 public:
  explicit ThrottledLink(std::optional<ir::LinkRate> rate) : rate_(rate) {}
  /// Returns when the link has carried the bytes: latency + bytes / bandwidth after the call, and
  /// what the last piece takes to copy.
  void copy(void* to, const void* from, Bytes bytes) const;

 private:
  std::optional<ir::LinkRate> rate_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_THROTTLED_LINK_H_
