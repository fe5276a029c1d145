// SPDX-License-Identifier: Apache-2.0
//
// Each rank listens on a unix socket in the abstract namespace, which has no file to remove. Its
// name is a random token. The steps, with a collective between them:
//   1. Listen. Gather all tokens.
//   2. Connect to every other rank and send: this rank's number, with the descriptors. Gather
//      whether all could.
//   3. Accept. A connection counts if its process has this user and its message is as expected.
//      Gather whether all have everything.
// Neither connecting nor sending waits for the other side to accept. After step 2 all messages are
// in the sockets' queues, so step 3 does not wait either, whatever strangers do.
#include "runtime/ranks/descriptor_exchange.h"

#include <llvm/ADT/StringExtras.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>

namespace stowage::runtime {

namespace {

using Token = std::array<uint8_t, 16>;  // all zero: the rank does not listen

constexpr int kWaiting = 1024;  // connections that nobody has accepted yet

struct Listening {
  Descriptor socket;
  Token token{};
};

struct Address {
  sockaddr_un bytes{};
  socklen_t size = 0;
};

struct Received {
  int32_t rank = 0;
  std::vector<Descriptor> descriptors;
};

Address addressOf(const Token& token) {
  const std::string name = "stowage-" + llvm::toHex(token, /*LowerCase=*/true);
  Address address;
  address.bytes.sun_family = AF_UNIX;
  // A first byte of 0 means the abstract namespace.
  std::copy(name.begin(), name.end(), address.bytes.sun_path + 1);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

const sockaddr* asGeneral(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.bytes);
}

Descriptor openSocket() {
  return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// Nothing where the system refuses.
std::optional<Listening> listenSomewhere() {
  Listening own{.socket = openSocket()};
  if (!own.socket.isValid()) return std::nullopt;
  const ssize_t drawn = ::getrandom(own.token.data(), own.token.size(), 0);
  if (drawn != ssize_t{own.token.size()}) return std::nullopt;
  const Address address = addressOf(own.token);
  if (::bind(own.socket.get(), asGeneral(address), address.size) != 0) return std::nullopt;
  if (::listen(own.socket.get(), kWaiting) != 0) return std::nullopt;
  return own;
}

bool isOfThisUser(const Descriptor& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

bool sendMessage(const Descriptor& socket, int32_t rank, llvm::ArrayRef<int> descriptors) {
  iovec text{.iov_base = &rank, .iov_len = sizeof(rank)};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  std::vector<uint8_t> control;
  if (!descriptors.empty()) {
    const size_t bytes = descriptors.size() * sizeof(int);
    control.resize(CMSG_SPACE(bytes));
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(head), descriptors.data(), bytes);
  }
  return ::sendmsg(socket.get(), &message, MSG_NOSIGNAL) == ssize_t{sizeof(rank)};
}

/// The message stays in the queue when its socket here is closed.
bool sendTo(const Token& token, int32_t ownRank, llvm::ArrayRef<int> descriptors) {
  const Descriptor socket = openSocket();
  const Address address = addressOf(token);
  return socket.isValid() && ::connect(socket.get(), asGeneral(address), address.size) == 0 &&
         isOfThisUser(socket) && sendMessage(socket, ownRank, descriptors);
}

/// Takes over all descriptors in the message, also those that nobody expects.
std::vector<Descriptor> takeDescriptors(msghdr& message) {
  std::vector<Descriptor> taken;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(head) + i * sizeof(int), sizeof(number));
      taken.emplace_back(number);
    }
  }
  return taken;
}

/// Nothing for what no rank sends, or where not all descriptors could be opened here.
std::optional<Received> receiveMessage(const Descriptor& socket, size_t descriptors) {
  Received received;
  iovec text{.iov_base = &received.rank, .iov_len = sizeof(received.rank)};
  std::vector<uint8_t> control(CMSG_SPACE(descriptors * sizeof(int)));
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t bytes = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  if (bytes < 0) return std::nullopt;
  received.descriptors = takeDescriptors(message);
  const bool isWhole = bytes == ssize_t{sizeof(received.rank)} &&
                       (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
                       received.descriptors.size() == descriptors;
  if (!isWhole) return std::nullopt;
  return received;
}

/// Nothing if another rank's message is not there. Other connections are closed.
std::optional<RankDescriptors> receiveFromAll(const Descriptor& listener,
                                              const Communicator& between, size_t descriptors) {
  RankDescriptors all(static_cast<size_t>(between.count()));
  std::vector<bool> isThere(all.size());
  isThere[static_cast<size_t>(between.rank())] = true;
  const auto isMissing = [&](int32_t rank) {
    return rank >= 0 && rank < between.count() && !isThere[static_cast<size_t>(rank)];
  };
  int32_t missing = between.count() - 1;
  // The kernel queues one connection more than asked for.
  for (int accepted = 0; missing > 0 && accepted <= kWaiting; ++accepted) {
    const Descriptor socket(
        ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.isValid()) return std::nullopt;
    if (!isOfThisUser(socket)) continue;
    std::optional<Received> received = receiveMessage(socket, descriptors);
    if (!received || !isMissing(received->rank)) continue;
    const auto rank = static_cast<size_t>(received->rank);
    all[rank] = std::move(received->descriptors);
    isThere[rank] = true;
    --missing;
  }
  if (missing > 0) return std::nullopt;
  return all;
}

ir::Expected<std::vector<Token>> gatherTokens(Communicator& between, const Token& own) {
  std::vector<uint8_t> bytes(own.size() * static_cast<size_t>(between.count()));
  if (ir::Error error = between.allGather(own, bytes)) return error;
  std::vector<Token> tokens(static_cast<size_t>(between.count()));
  std::memcpy(tokens.data(), bytes.data(), bytes.size());
  return tokens;
}

}  // namespace

ir::Expected<std::optional<RankDescriptors>> exchangeDescriptors(Communicator& between,
                                                                 llvm::ArrayRef<int> own) {
  const std::optional<Listening> listening = listenSomewhere();
  ir::Expected<std::vector<Token>> tokens =
      gatherTokens(between, listening ? listening->token : Token{});
  if (!tokens) return tokens.takeError();
  if (llvm::is_contained(*tokens, Token{})) return std::nullopt;  // all ranks see it

  bool isSent = true;
  for (int32_t rank = 0; rank < between.count() && isSent; ++rank) {
    if (rank == between.rank()) continue;
    isSent = sendTo((*tokens)[static_cast<size_t>(rank)], between.rank(), own);
  }
  ir::Expected<bool> haveAllSent = between.isOnAll(isSent);
  if (!haveAllSent) return haveAllSent.takeError();
  if (!*haveAllSent) return std::nullopt;

  std::optional<RankDescriptors> received = receiveFromAll(listening->socket, between, own.size());
  ir::Expected<bool> haveAllReceived = between.isOnAll(received.has_value());
  if (!haveAllReceived) return haveAllReceived.takeError();
  if (!*haveAllReceived) return std::nullopt;
  return received;
}

}  // namespace stowage::runtime
