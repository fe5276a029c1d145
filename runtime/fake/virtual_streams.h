// SPDX-License-Identifier: Apache-2.0
//
// Streams in virtual time: a discrete event simulation of first in, first out queues with events
// between them, and of a host that enqueues and sometimes waits. Nothing happens before the host
// waits; then begins and ends of work run in order of time, ends before begins at equal times, and
// then in enqueue order.
// After a wait the host enqueues at the time at which the wait was over; after launch overhead,
// when that time has passed.
#ifndef STOWAGE_RUNTIME_FAKE_VIRTUAL_STREAMS_H_
#define STOWAGE_RUNTIME_FAKE_VIRTUAL_STREAMS_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <vector>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "ir/schedule/schedule.h"

namespace stowage::runtime {

/// An event of one program in one step.
struct VirtualEvent {
  int32_t program = 0;
  int32_t event = 0;
  int64_t step = 0;
  friend auto operator<=>(const VirtualEvent&, const VirtualEvent&) = default;
};

struct VirtualWork {
  std::function<void(Nanoseconds now)> begin;
  std::function<void(Nanoseconds now)> end;
  Nanoseconds duration;
  Nanoseconds delay;  // between the time it could begin and the time it does
};

class VirtualStreams {
 public:
  /// The host takes `time` before it enqueues what follows.
  void spend(Nanoseconds time) { host_ += time; }
  void pushWork(ir::Stream stream, VirtualWork work);
  void pushWait(ir::Stream stream, VirtualEvent event);
  void pushRecord(ir::Stream stream, VirtualEvent event);
  /// Takes no time.
  void pushAction(ir::Stream stream, std::function<void()> action);

  /// Lets time pass until the event is finished. Errors: kInternal if it never will be.
  ir::Error runUntil(VirtualEvent event);
  /// Lets time pass until all streams are idle. Errors: kInternal if one waits for ever.
  ir::Error runAll();

 private:
  enum class Kind : uint8_t { kWork, kWait, kRecord, kAction };
  struct Item {
    Kind kind = Kind::kWork;
    Nanoseconds enqueued;
    VirtualWork work;
    VirtualEvent event;
    std::function<void()> action;
  };
  struct Stream {
    std::deque<Item> items;
    Nanoseconds ready;    // when what came before is finished
    bool isBusy = false;  // its first item is work that has a begin or end to come
  };
  // (time, begin after end, order of making, stream)
  using Tick = std::tuple<int64_t, int, int64_t, size_t>;

  void push(ir::Stream stream, Item item);
  void pumpAll();
  bool pump(size_t stream);
  bool advance();
  void schedule(size_t stream, Nanoseconds time, bool isBegin);

  std::array<Stream, ir::kStreamCount> streams_;
  std::map<VirtualEvent, Nanoseconds> finished_;
  std::priority_queue<Tick, std::vector<Tick>, std::greater<>> ticks_;
  int64_t nextTick_ = 0;
  Nanoseconds host_;
  Nanoseconds now_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_FAKE_VIRTUAL_STREAMS_H_
