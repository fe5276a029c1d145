// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/stop_signal.h"

#include <csignal>
#include <ctime>
#include <initializer_list>

namespace stowage::tools {
namespace {

volatile std::sig_atomic_t asked = 0;
volatile std::time_t askedAt = 0;

/// Who starts processes may send a signal more than once when it ends itself.
void askToStop(int signal) {
  constexpr std::time_t kSame = 2;  // seconds in which it is the same request
  const std::time_t now = std::time(nullptr);
  if (asked != 0 && now - askedAt > kSame) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  if (asked == 0) askedAt = now;
  asked = signal;
}

}  // namespace

void catchStopSignals() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    if (std::signal(signal, askToStop) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

int stopSignal() { return asked; }

}  // namespace stowage::tools
