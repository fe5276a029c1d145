// SPDX-License-Identifier: Apache-2.0
#include "tools/planning/time_limit.h"

namespace stowage::tools {

TimeLimit::TimeLimit(double seconds) : seconds_(seconds) { restart(); }

void TimeLimit::restart() { *end_ = Clock::now() + std::chrono::duration<double>(seconds_); }

std::function<bool()> TimeLimit::isOver() const {
  if (seconds_ <= 0) return nullptr;
  return [end = end_] { return Clock::now() >= *end; };
}

}  // namespace stowage::tools
