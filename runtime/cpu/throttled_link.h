// SPDX-License-Identifier: Apache-2.0
//
// A copy engine of the CPU device: memory copies that take as long as a link of a given rate would.
// It sleeps until the link would have carried the next 1 MiB, then copies them. A sleeping thread
// needs no core, so copies overlap with compute even on a machine with few cores, and a step takes
// the time that the plan says.
// Without a rate it copies as fast as memory allows.
#ifndef STOWAGE_RUNTIME_CPU_THROTTLED_LINK_H_
#define STOWAGE_RUNTIME_CPU_THROTTLED_LINK_H_

#include <chrono>
#include <optional>

#include "ir/base/units.h"
#include "ir/schedule/target.h"

namespace stowage::runtime {

inline constexpr Bytes kLinkPiece{int64_t{1} << 20};
/// A copy that is asked for this soon after the last one was waiting for the link.
inline constexpr std::chrono::microseconds kBackToBack{50};

/// Used by one thread, its stream's.
class ThrottledLink {
 public:
  explicit ThrottledLink(std::optional<ir::LinkRate> rate) : rate_(rate) {}
  /// Returns when the link has carried the bytes: latency + bytes / bandwidth after it is free, and
  /// what the last piece takes to copy. Of copies back to back the next begins when the link was
  /// done with the one before, not when this thread had woken and copied its last piece.
  void copy(void* to, const void* from, Bytes bytes);

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point begin() const;

  std::optional<ir::LinkRate> rate_;
  Clock::time_point free_;   // when the link had carried the last copy
  Clock::time_point ended_;  // when that copy was done here
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CPU_THROTTLED_LINK_H_
