// SPDX-License-Identifier: Apache-2.0
//
// SIGTERM, SIGINT and SIGHUP ask a long work to stop: what is under way is finished and saved. One
// that comes more than two seconds later ends the process as it would any other.
#ifndef STOWAGE_TOOLS_CLI_STOP_SIGNAL_H_
#define STOWAGE_TOOLS_CLI_STOP_SIGNAL_H_

namespace stowage::tools {

/// From here on they are caught; one that the process was started to ignore (nohup) stays ignored.
void catchStopSignals();
/// The one that came; 0: none.
int stopSignal();

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_CLI_STOP_SIGNAL_H_
