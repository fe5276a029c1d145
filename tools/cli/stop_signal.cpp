// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/stop_signal.h"

#include <csignal>
#include <initializer_list>

namespace stowage::tools {
namespace {

volatile std::sig_atomic_t asked = 0;

void askToStop(int signal) {
  asked = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void catchStopSignals() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    if (std::signal(signal, askToStop) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

int stopSignal() { return asked; }

}  // namespace stowage::tools
