// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/throttled_link.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>

namespace stowage::runtime {

ThrottledLink::Clock::time_point ThrottledLink::begin() const {
  const Clock::time_point now = Clock::now();
  return now - ended_ <= kBackToBack ? free_ : now;
}

void ThrottledLink::copy(void* to, const void* from, Bytes bytes) {
  if (!rate_) {
    std::memcpy(to, from, static_cast<size_t>(bytes.value()));
    return;
  }
  const Clock::time_point start = begin();
  for (Bytes done; done < bytes;) {
    const Bytes piece = std::min(kLinkPiece, bytes - done);
    // Counted from the start: what one piece oversleeps, the next one does not. The bytes arrive
    // when the link would bring them, not before: who does not wait for them sees that.
    const Nanoseconds due = rate_->latency + transferTime(done + piece, rate_->bandwidth);
    free_ = start + std::chrono::nanoseconds(due.value());
    std::this_thread::sleep_until(free_);
    std::memcpy(static_cast<uint8_t*>(to) + done.value(),
                static_cast<const uint8_t*>(from) + done.value(),
                static_cast<size_t>(piece.value()));
    done += piece;
  }
  ended_ = Clock::now();
}

}  // namespace stowage::runtime
