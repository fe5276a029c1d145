// SPDX-License-Identifier: Apache-2.0
#include "runtime/ranks/socket_mesh.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/Endian.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <utility>

namespace stowage::runtime {

namespace {

constexpr size_t kTokenBytes = 32;  // hexadecimal digits
constexpr std::chrono::seconds kHelloTime(5);

/// What the one who connects says first.
struct Hello {
  std::string token;
  int32_t rank = 0;
};
constexpr size_t kHelloBytes = kTokenBytes + 4;
using HelloBytes = std::array<uint8_t, kHelloBytes>;

HelloBytes writeHello(const Hello& hello) {
  HelloBytes bytes{};
  std::copy_n(hello.token.begin(), kTokenBytes, bytes.begin());
  llvm::support::endian::write32le(bytes.data() + kTokenBytes, static_cast<uint32_t>(hello.rank));
  return bytes;
}

Hello readHello(const HelloBytes& bytes) {
  const uint32_t rank = llvm::support::endian::read32le(bytes.data() + kTokenBytes);
  return {.token = std::string(bytes.begin(), bytes.begin() + kTokenBytes),
          .rank = static_cast<int32_t>(rank)};
}

std::string makeToken() {
  std::random_device random;
  std::string token;
  while (token.size() < kTokenBytes) token += llvm::hexdigit(random() % 16, /*LowerCase=*/true);
  return token;
}

std::string keyOf(int32_t rank) { return "stowage/rank/" + std::to_string(rank); }

/// What a rank puts into the store: where it listens, and the token that it wants to see.
struct Entry {
  HostPort address;
  std::string token;
};

std::string entryText(const Entry& entry) {
  return entry.address.host + " " + std::to_string(entry.address.port) + " " + entry.token;
}

ir::Expected<Entry> readEntry(int32_t rank, llvm::StringRef text) {
  const auto [host, rest] = text.split(' ');
  const auto [port, token] = rest.split(' ');
  Entry entry{.address = {.host = host.str()}, .token = token.str()};
  if (host.empty() || port.getAsInteger(10, entry.address.port) || token.size() != kTokenBytes) {
    return ir::makeError(ir::ErrorCode::kEnvironment, "the store's key '" + keyOf(rank) +
                                                          "': found '" + text.str() +
                                                          "', expected a host, a port and a token");
  }
  return entry;
}

class Mesh {
 public:
  Mesh(const RankPlace& place, RankStore& store, std::chrono::milliseconds patience)
      : place_(place),
        store_(store),
        patience_(patience),
        deadline_(Clock::now() + patience),
        sockets_(static_cast<size_t>(place.count)) {}

  ir::Expected<std::vector<Socket>> connect() {
    ir::Expected<Listener> listener = listenAt(place_.host);
    if (!listener) return listener.takeError();
    const Entry own{.address = {.host = place_.host, .port = listener->port}, .token = makeToken()};
    if (ir::Error error = store_.set(keyOf(place_.rank), entryText(own))) return error;
    for (int32_t i = 0; i < place_.rank; ++i) {
      if (ir::Error error = connectToRank(i)) return error;
    }
    if (ir::Error error = acceptLaterRanks(listener->socket, own.token)) return error;
    return std::move(sockets_);
  }

 private:
  Socket& socketOf(int32_t rank) { return sockets_[static_cast<size_t>(rank)]; }

  ir::Error connectToRank(int32_t rank) {
    ir::Expected<std::string> text = store_.get(keyOf(rank));
    if (!text) return text.takeError();
    ir::Expected<Entry> entry = readEntry(rank, *text);
    if (!entry) return entry.takeError();
    ir::Expected<Socket> socket = connectTo(entry->address, deadline_);
    if (!socket) return socket.takeError();
    const HelloBytes hello = writeHello({.token = entry->token, .rank = place_.rank});
    if (ir::Error error = sendAll(*socket, hello, deadline_)) return error;
    socketOf(rank) = std::move(*socket);
    return ir::success();
  }

  ir::Error acceptLaterRanks(const Socket& listener, const std::string& token) {
    for (int32_t missing = place_.count - 1 - place_.rank; missing > 0;) {
      ir::Expected<Socket> socket = acceptOne(listener, deadline_);
      if (!socket) return namesOfMissing(socket.takeError());
      const std::optional<int32_t> rank = findRank(*socket, token);
      if (!rank) continue;  // a stranger
      socketOf(*rank) = std::move(*socket);
      --missing;
    }
    return ir::success();
  }

  std::optional<int32_t> findRank(const Socket& socket, const std::string& token) {
    HelloBytes bytes{};
    if (ir::Error error = receiveAll(socket, bytes, Clock::now() + kHelloTime)) {
      (void)ir::takePayload(std::move(error));
      return std::nullopt;
    }
    const Hello hello = readHello(bytes);
    const bool isLater = hello.rank > place_.rank && hello.rank < place_.count;
    if (hello.token != token || !isLater || socketOf(hello.rank).isOpen()) return std::nullopt;
    return hello.rank;
  }

  ir::Error namesOfMissing(ir::Error error) {
    std::string ranks;
    for (int32_t i = place_.rank + 1; i < place_.count; ++i) {
      if (socketOf(i).isOpen()) continue;
      ranks += (ranks.empty() ? "" : ", ") + std::to_string(i);
    }
    ir::PlanError found = ir::takePayload(std::move(error));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience_).count();
    ir::PlanError named(ir::ErrorCode::kEnvironment,
                        "rank " + std::to_string(place_.rank) + " of " +
                            std::to_string(place_.count) + " waited " + std::to_string(seconds) +
                            " s for the ranks " + ranks + ", which did not come");
    return ir::makeError(std::move(named.note(found.text())));
  }

  const RankPlace& place_;
  RankStore& store_;
  std::chrono::milliseconds patience_;
  Clock::time_point deadline_;
  std::vector<Socket> sockets_;
};

}  // namespace

ir::Expected<std::vector<Socket>> connectRanks(const RankPlace& place, RankStore& store,
                                               std::chrono::milliseconds patience) {
  if (place.count < 1 || place.rank < 0 || place.rank >= place.count) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "found rank " + std::to_string(place.rank) + " of " +
                             std::to_string(place.count) + " ranks, expected 0 to count - 1");
  }
  return Mesh(place, store, patience).connect();
}

}  // namespace stowage::runtime
