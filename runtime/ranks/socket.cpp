// SPDX-License-Identifier: Apache-2.0
#include "runtime/ranks/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <thread>

namespace stowage::runtime {

namespace {

constexpr int kWaiting = 1024;  // connections that nobody has accepted yet
constexpr std::chrono::milliseconds kBetweenTries(50);
// A host that vanishes without a word while nothing is sent is noticed within about 30 seconds. No
// TCP_USER_TIMEOUT: it also ends connections to a rank that computes and reads nothing meanwhile.
constexpr int kIdleSeconds = 10;
constexpr int kProbeSeconds = 5;
constexpr int kProbes = 4;

ir::Error systemError(const std::string& what, int number) {
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       what + ": " + std::generic_category().message(number));
}

ir::Error isLate(const std::string& what) {
  return ir::makeError(ir::ErrorCode::kEnvironment, what + ": no answer in time");
}

void setOption(const Socket& socket, int level, int name, int value) {
  (void)::setsockopt(socket.get(), level, name, &value, sizeof value);  // works without, slower
}

void makeReady(const Socket& socket) {
  const int flags = ::fcntl(socket.get(), F_GETFL, 0);
  (void)::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
  (void)::fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
  setOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  setOption(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  setOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  setOption(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

ir::Expected<Addresses> findAddresses(const HostPort& address) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
  if (status != 0) {
    return ir::makeError(ir::ErrorCode::kEnvironment,
                         "host '" + address.host + "': " + ::gai_strerror(status));
  }
  return Addresses(found, &::freeaddrinfo);
}

Socket openSocket(const addrinfo& address) {
  Socket socket(::socket(address.ai_family, address.ai_socktype, address.ai_protocol));
  if (socket.isOpen()) makeReady(socket);
  return socket;
}

/// 0, or the number of the error.
int connectOnce(const Socket& socket, const addrinfo& address, Clock::time_point deadline) {
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!waitUntilReady(socket, POLLOUT, deadline)) return ETIMEDOUT;
  int number = 0;
  socklen_t size = sizeof number;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &number, &size) != 0) return errno;
  return number;
}

Moved movedOf(ssize_t count, bool isReceiving) {
  if (count > 0) return {.bytes = static_cast<size_t>(count)};
  if (count == 0) return {.isOver = isReceiving};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {};
  return {.isOver = true, .errorNumber = errno};
}

template <typename Some>
ir::Error moveAll(const Socket& socket, size_t bytes, short events, Clock::time_point deadline,
                  Some some) {
  for (size_t at = 0; at < bytes;) {
    const Moved moved = some(at);
    at += moved.bytes;
    if (moved.isOver) return systemError("the connection ended", moved.errorNumber);
    if (moved.bytes == 0 && !waitUntilReady(socket, events, deadline)) {
      return isLate("a connection");
    }
  }
  return ir::success();
}

}  // namespace

int millisecondsUntil(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000));
}

bool waitUntilReady(const Socket& socket, short events, Clock::time_point deadline) {
  for (;;) {
    pollfd one{.fd = socket.get(), .events = events, .revents = 0};
    const int ready = ::poll(&one, 1, millisecondsUntil(deadline));
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= deadline) return false;
    if (ready < 0 && errno != EINTR) return true;  // the call that follows says why
  }
}

Moved sendSome(const Socket& socket, llvm::ArrayRef<uint8_t> bytes) {
  return movedOf(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), false);
}

Moved receiveSome(const Socket& socket, llvm::MutableArrayRef<uint8_t> bytes) {
  return movedOf(::recv(socket.get(), bytes.data(), bytes.size(), 0), true);
}

ir::Error sendAll(const Socket& socket, llvm::ArrayRef<uint8_t> bytes, Clock::time_point deadline) {
  return moveAll(socket, bytes.size(), POLLOUT, deadline,
                 [&](size_t at) { return sendSome(socket, bytes.drop_front(at)); });
}

ir::Error receiveAll(const Socket& socket, llvm::MutableArrayRef<uint8_t> bytes,
                     Clock::time_point deadline) {
  return moveAll(socket, bytes.size(), POLLIN, deadline,
                 [&](size_t at) { return receiveSome(socket, bytes.drop_front(at)); });
}

ir::Expected<Listener> listenAt(const std::string& host) {
  ir::Expected<Addresses> addresses = findAddresses({.host = host});
  if (!addresses) return addresses.takeError();
  const addrinfo& address = **addresses;
  const std::string what = "listening at '" + host + "'";
  Listener listener{.socket = openSocket(address)};
  if (!listener.socket.isOpen()) return systemError(what, errno);
  const int number = listener.socket.get();
  if (::bind(number, address.ai_addr, address.ai_addrlen) != 0 || ::listen(number, kWaiting) != 0) {
    return systemError(what, errno);
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(number, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return systemError(what, errno);
  }
  listener.port = bound.ss_family == AF_INET6
                      ? ntohs(reinterpret_cast<const sockaddr_in6&>(bound).sin6_port)
                      : ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
  return listener;
}

// Connecting for datagrams sends nothing; it only chooses the interface.
ir::Expected<std::string> findAddressTowards(const HostPort& address) {
  ir::Expected<Addresses> addresses = findAddresses(address);
  if (!addresses) return addresses.takeError();
  const addrinfo& first = **addresses;
  const std::string what = "finding the interface towards '" + address.host + "'";
  const Socket socket(::socket(first.ai_family, SOCK_DGRAM, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (!socket.isOpen() || ::connect(socket.get(), first.ai_addr, first.ai_addrlen) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return systemError(what, errno);
  }
  char text[NI_MAXHOST];
  const int status = ::getnameinfo(reinterpret_cast<const sockaddr*>(&own), size, text, sizeof text,
                                   nullptr, 0, NI_NUMERICHOST);
  if (status != 0) {
    return ir::makeError(ir::ErrorCode::kEnvironment, what + ": " + ::gai_strerror(status));
  }
  return std::string(text);
}

ir::Expected<Socket> acceptOne(const Socket& listener, Clock::time_point deadline) {
  for (;;) {
    Socket socket(::accept(listener.get(), nullptr, nullptr));
    if (socket.isOpen()) {
      makeReady(socket);
      return socket;
    }
    const bool mayComeLater =
        errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED;
    if (!mayComeLater) return systemError("waiting for other ranks", errno);
    if (!waitUntilReady(listener, POLLIN, deadline)) return isLate("waiting for other ranks");
  }
}

ir::Expected<Socket> connectTo(const HostPort& address, Clock::time_point deadline) {
  const std::string what =
      "connecting to '" + address.host + "' port " + std::to_string(address.port);
  ir::Expected<Addresses> addresses = findAddresses(address);
  if (!addresses) return addresses.takeError();
  int number = 0;
  do {
    for (const addrinfo* one = addresses->get(); one != nullptr; one = one->ai_next) {
      Socket socket = openSocket(*one);
      if (!socket.isOpen()) return systemError(what, errno);
      number = connectOnce(socket, *one, deadline);
      if (number == 0) return socket;
    }
    std::this_thread::sleep_for(kBetweenTries);
  } while (Clock::now() < deadline);
  return systemError(what, number);
}

}  // namespace stowage::runtime
