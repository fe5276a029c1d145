// SPDX-License-Identifier: Apache-2.0
#include "runtime/throttled_link.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

namespace stowage::runtime {

void ThrottledLink::copy(void* to, const void* from, Bytes bytes) const {
  const auto begin = std::chrono::steady_clock::now();
  for (Bytes done; done < bytes;) {
    const Bytes piece = std::min(kLinkPiece, bytes - done);
    if (rate_) {
      // Counted from the begin: what one piece oversleeps, the next one does not. The bytes arrive
      // when the link would bring them, not before: who does not wait for them sees that.
      const Nanoseconds due = rate_->latency + transferTime(done + piece, rate_->bandwidth);
      std::this_thread::sleep_until(begin + std::chrono::nanoseconds(due.value()));
    }
    std::memcpy(static_cast<uint8_t*>(to) + done.value(),
                static_cast<const uint8_t*>(from) + done.value(),
                static_cast<size_t>(piece.value()));
    done += piece;
  }
}

}  // namespace stowage::runtime
