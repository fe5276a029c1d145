// SPDX-License-Identifier: Apache-2.0
#include "runtime/ranks/socket_ranks.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

namespace stowage::runtime {

namespace {

constexpr int64_t kMostReason = 4096;
constexpr std::chrono::milliseconds kFarewell(500);         // for the others to read why
constexpr std::chrono::milliseconds kMostFarewell(10'000);  // while they take what is half sent

/// One collective with one other rank: what goes there and what comes, each after its head.
struct Transfer {
  int32_t rank = 0;
  CollectiveHead headOut;
  llvm::ArrayRef<uint8_t> out;
  CollectiveHead headIn;
  llvm::MutableArrayRef<uint8_t> in;
  size_t sent = 0;  // heads included
  size_t received = 0;
  std::optional<std::vector<uint8_t>> reason;  // why it gives up: then `in` is there
  bool cannotSend = false;
  Clock::time_point lastMoved;

  bool isSent() const { return cannotSend || sent == kCollectiveBytes + out.size(); }
  bool isReceived() const { return received == kCollectiveBytes + in.size(); }
  bool isDone() const { return isSent() && isReceived(); }
  llvm::ArrayRef<uint8_t> toSend() const {
    if (sent < kCollectiveBytes) return llvm::ArrayRef<uint8_t>(headOut).drop_front(sent);
    return out.drop_front(sent - kCollectiveBytes);
  }
  llvm::MutableArrayRef<uint8_t> toReceive() {
    if (received < kCollectiveBytes) {
      return llvm::MutableArrayRef<uint8_t>(headIn).drop_front(received);
    }
    return in.drop_front(received - kCollectiveBytes);
  }
};

class SocketRank : public Communicator {
 public:
  SocketRank(const RankPlace& place, std::vector<Socket> sockets,
             std::chrono::milliseconds patience)
      : Communicator(place.rank, place.count),
        sockets_(std::move(sockets)),
        isBetween_(sockets_.size(), true),
        patience_(patience) {}

  bool isAnyOver() override {
    return std::any_of(sockets_.begin(), sockets_.end(), [](const Socket& socket) {
      return socket.isOpen() && waitUntilReady(socket, POLLIN, Clock::now());
    });
  }

 protected:
  ir::Error exchange(const Collective& collective, llvm::ArrayRef<llvm::ArrayRef<uint8_t>> toRanks,
                     llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> fromRanks) override {
    std::vector<Transfer> transfers;
    for (int32_t i = 0; i < count(); ++i) {
      if (i == rank()) continue;
      Transfer& one = transfers.emplace_back();
      one.rank = i;
      one.headOut = writeHead(collective);
      one.out = toRanks[static_cast<size_t>(i)];
      one.in = fromRanks[static_cast<size_t>(i)];
      one.lastMoved = Clock::now();
    }
    ir::Error error = moveAll(collective, transfers);
    if (error) finishSending(transfers);
    for (const Transfer& one : transfers) {
      const bool isWhole = one.sent == 0 || one.sent == kCollectiveBytes + one.out.size();
      isBetween_[static_cast<size_t>(one.rank)] = isWhole && !one.cannotSend;
    }
    return error;
  }

  // Best effort: who cannot be told finds the connection closed.
  void tellOthers(const std::string& reason) override {
    const std::string text = reason.substr(0, kMostReason);
    const CollectiveHead head =
        writeHead({.kind = CollectiveKind::kGiveUp, .bytes = static_cast<int64_t>(text.size())});
    std::vector<uint8_t> message(head.begin(), head.end());
    message.insert(message.end(), text.begin(), text.end());
    for (size_t i = 0; i < sockets_.size(); ++i) {
      if (!sockets_[i].isOpen()) continue;
      if (isBetween_[i]) (void)sendSome(sockets_[i], message);
      (void)::shutdown(sockets_[i].get(), SHUT_WR);
    }
    // A connection that is closed with unread bytes loses what was sent last.
    const Clock::time_point deadline = Clock::now() + kFarewell;
    for (const Socket& socket : sockets_) {
      if (socket.isOpen()) readToTheEnd(socket, deadline);
    }
  }

 private:
  const Socket& socketOf(const Transfer& transfer) const {
    return sockets_[static_cast<size_t>(transfer.rank)];
  }

  ir::Error moveAll(const Collective& collective, std::vector<Transfer>& transfers) {
    for (;;) {
      bool isMoving = false;
      for (Transfer& one : transfers) {
        if (one.isDone()) continue;
        ir::Expected<bool> moved = move(collective, one);
        if (!moved) return moved.takeError();
        isMoving = isMoving || *moved;
      }
      if (isMoving) continue;
      if (std::all_of(transfers.begin(), transfers.end(),
                      [](const Transfer& one) { return one.isDone(); })) {
        return ir::success();
      }
      if (ir::Error error = waitForAny(collective, transfers)) return error;
    }
  }

  // What is half sent goes on for a while: only behind it can the other rank be told why.
  void finishSending(std::vector<Transfer>& transfers) const {
    const Clock::time_point deadline = Clock::now() + kMostFarewell;
    for (Transfer& one : transfers) {
      while (one.sent > 0 && !one.isSent() && Clock::now() < deadline) {
        if (!send(one) && !waitUntilReady(socketOf(one), POLLOUT, Clock::now() + kFarewell)) break;
      }
    }
  }

  /// Was it of any use? It may have said why before it closed, so the end is found by reading.
  bool send(Transfer& one) const {
    const Moved moved = sendSome(socketOf(one), one.toSend());
    one.sent += moved.bytes;
    one.cannotSend = moved.isOver;
    return moved.bytes > 0 || moved.isOver;
  }

  /// Did any byte move?
  ir::Expected<bool> move(const Collective& collective, Transfer& one) {
    bool isAny = !one.isSent() && send(one);
    if (!one.isReceived()) {
      const Moved moved = receiveSome(socketOf(one), one.toReceive());
      one.received += moved.bytes;
      isAny = isAny || moved.bytes > 0;
      if (moved.isOver) return rankError(one.rank, goneText(moved), collective);
      if (moved.bytes > 0 && one.received == kCollectiveBytes) {
        if (ir::Error error = readTheirs(collective, one)) return error;
      }
      if (one.reason && one.isReceived()) {
        return rankError(one.rank,
                         "gave up (" + std::string(one.reason->begin(), one.reason->end()) + ")",
                         collective);
      }
    }
    if (isAny) one.lastMoved = Clock::now();
    return isAny;
  }

  static std::string goneText(const Moved& moved) {
    if (moved.errorNumber == 0) return "is gone (it closed its connection)";
    return "is gone (" + std::generic_category().message(moved.errorNumber) + ")";
  }

  static ir::Error readTheirs(const Collective& own, Transfer& one) {
    const std::optional<Collective> theirs = readHead(one.headIn);
    if (!theirs) return rankError(one.rank, "sent bytes that are no collective's", own);
    if (theirs->kind == CollectiveKind::kGiveUp && theirs->bytes <= kMostReason) {
      one.in = one.reason.emplace(static_cast<size_t>(theirs->bytes));
      return ir::success();
    }
    return checkSame(one.rank, own, *theirs);
  }

  ir::Error waitForAny(const Collective& collective, const std::vector<Transfer>& transfers) const {
    std::vector<pollfd> waiting;
    const Transfer* quietest = nullptr;
    for (const Transfer& one : transfers) {
      if (one.isDone()) continue;
      short events = 0;
      if (!one.isSent()) events |= POLLOUT;
      if (!one.isReceived()) events |= POLLIN;
      waiting.push_back({.fd = socketOf(one).get(), .events = events, .revents = 0});
      if (quietest == nullptr || one.lastMoved < quietest->lastMoved) quietest = &one;
    }
    const auto quiet =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - quietest->lastMoved);
    if (quiet >= patience_) {
      return rankError(quietest->rank,
                       "is silent for " + std::to_string(quiet.count() / 1000) + " s", collective);
    }
    const int most = millisecondsUntil(quietest->lastMoved + patience_);
    (void)::poll(waiting.data(), waiting.size(), most);
    return ir::success();
  }

  static void readToTheEnd(const Socket& socket, Clock::time_point deadline) {
    std::vector<uint8_t> bytes(1 << 16);
    while (Clock::now() < deadline && waitUntilReady(socket, POLLIN, deadline)) {
      if (receiveSome(socket, bytes).isOver) return;
    }
  }

  std::vector<Socket> sockets_;
  std::vector<bool> isBetween_;  // by rank: the last message that went there is whole
  std::chrono::milliseconds patience_;
};

}  // namespace

ir::Expected<std::unique_ptr<Communicator>> joinRanks(const RankPlace& place, RankStore& store,
                                                      const RankPatience& patience) {
  ir::Expected<std::vector<Socket>> sockets = connectRanks(place, store, patience.join);
  if (!sockets) return sockets.takeError();
  return std::make_unique<SocketRank>(place, std::move(*sockets), patience.collective);
}

}  // namespace stowage::runtime
