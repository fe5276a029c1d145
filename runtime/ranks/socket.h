// SPDX-License-Identifier: Apache-2.0
//
// TCP connections between ranks: the system calls, and what their errors mean. Nothing here blocks
// for longer than the caller says.
#ifndef STOWAGE_RUNTIME_RANKS_SOCKET_H_
#define STOWAGE_RUNTIME_RANKS_SOCKET_H_

#include <llvm/ADT/ArrayRef.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "ir/base/error.h"
#include "runtime/files/file_handle.h"

namespace stowage::runtime {

using Clock = std::chrono::steady_clock;

using Socket = FileHandle;

/// How far a transfer that does not block has come.
struct Moved {
  size_t bytes = 0;     // 0: nothing now
  bool isOver = false;  // the other side is gone
  int errorNumber = 0;  // of the system, where it said why
};

Moved sendSome(const Socket& socket, llvm::ArrayRef<uint8_t> bytes);
Moved receiveSome(const Socket& socket, llvm::MutableArrayRef<uint8_t> bytes);

/// For poll(): what is left, rounded up; 0 behind the deadline.
int millisecondsUntil(Clock::time_point deadline);
/// `events` of poll(). False at the deadline; true also where the socket has an error.
bool waitUntilReady(const Socket& socket, short events, Clock::time_point deadline);

/// All of it, or kEnvironment when the other side is gone or it is not done at `deadline`.
ir::Error sendAll(const Socket& socket, llvm::ArrayRef<uint8_t> bytes, Clock::time_point deadline);
ir::Error receiveAll(const Socket& socket, llvm::MutableArrayRef<uint8_t> bytes,
                     Clock::time_point deadline);

struct HostPort {
  std::string host;  // a number or a name
  uint16_t port = 0;
};

struct Listener {
  Socket socket;
  uint16_t port = 0;
};

/// On a free port of the interface that has this address. Errors: kEnvironment.
ir::Expected<Listener> listenAt(const std::string& host);
/// Errors: kEnvironment, also at the deadline.
ir::Expected<Socket> acceptOne(const Socket& listener, Clock::time_point deadline);
/// The address of this host on the interface that leads there: what others can reach it by.
/// Errors: kEnvironment.
ir::Expected<std::string> findAddressTowards(const HostPort& address);
/// Tries until the deadline. Errors: kEnvironment with the address.
ir::Expected<Socket> connectTo(const HostPort& address, Clock::time_point deadline);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RANKS_SOCKET_H_
