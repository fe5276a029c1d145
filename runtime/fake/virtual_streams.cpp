// SPDX-License-Identifier: Apache-2.0
#include "runtime/fake/virtual_streams.h"

#include <algorithm>
#include <string>
#include <utility>

namespace stowage::runtime {

void VirtualStreams::push(ir::Stream stream, Item item) {
  item.enqueued = host_;
  streams_[static_cast<size_t>(stream)].items.push_back(std::move(item));
}

void VirtualStreams::pushWork(ir::Stream stream, VirtualWork work) {
  Item item;
  item.work = std::move(work);
  push(stream, std::move(item));
}

void VirtualStreams::pushWait(ir::Stream stream, VirtualEvent event) {
  Item item;
  item.kind = Kind::kWait;
  item.event = event;
  push(stream, std::move(item));
}

void VirtualStreams::pushRecord(ir::Stream stream, VirtualEvent event) {
  Item item;
  item.kind = Kind::kRecord;
  item.event = event;
  push(stream, std::move(item));
}

void VirtualStreams::pushAction(ir::Stream stream, std::function<void()> action) {
  Item item;
  item.kind = Kind::kAction;
  item.action = std::move(action);
  push(stream, std::move(item));
}

ir::Error VirtualStreams::runUntil(VirtualEvent event) {
  pumpAll();
  while (finished_.count(event) == 0) {
    if (!advance()) {
      return ir::makeError(ir::ErrorCode::kInternal, "the host waits for ever for event " +
                                                         std::to_string(event.event) + " of step " +
                                                         std::to_string(event.step));
    }
  }
  host_ = std::max(host_, finished_.at(event));
  return ir::success();
}

ir::Error VirtualStreams::runAll() {
  pumpAll();
  while (advance()) {
  }
  host_ = std::max(host_, now_);
  for (size_t s = 0; s < streams_.size(); ++s) {
    if (streams_[s].items.empty()) continue;
    return ir::makeError(
        ir::ErrorCode::kInternal,
        std::string("stream ") + ir::streamName(static_cast<ir::Stream>(s)) + " waits for ever");
  }
  return ir::success();
}

// Everything that takes no time, until nothing moves.
void VirtualStreams::pumpAll() {
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t s = 0; s < streams_.size(); ++s) moved = pump(s) || moved;
  }
}

bool VirtualStreams::pump(size_t index) {
  Stream& stream = streams_[index];
  bool moved = false;
  while (!stream.isBusy && !stream.items.empty()) {
    Item& item = stream.items.front();
    stream.ready = std::max(stream.ready, item.enqueued);
    if (item.kind == Kind::kWork) {
      stream.isBusy = true;
      schedule(index, stream.ready + item.work.delay, true);
      return true;
    }
    if (item.kind == Kind::kWait) {
      const auto found = finished_.find(item.event);
      if (found == finished_.end()) return moved;
      stream.ready = std::max(stream.ready, found->second);
    } else if (item.kind == Kind::kRecord) {
      finished_[item.event] = stream.ready;
      // Nobody waits for steps that far back.
      finished_.erase({item.event.program, item.event.event, item.event.step - 4});
    } else {
      item.action();
    }
    stream.items.pop_front();
    moved = true;
  }
  return moved;
}

void VirtualStreams::schedule(size_t stream, Nanoseconds time, bool isBegin) {
  ticks_.emplace(time.value(), isBegin ? 1 : 0, nextTick_++, stream);
}

bool VirtualStreams::advance() {
  if (ticks_.empty()) return false;
  const auto [time, isBegin, order, index] = ticks_.top();
  ticks_.pop();
  now_ = Nanoseconds(time);
  Stream& stream = streams_[index];
  Item& item = stream.items.front();
  if (isBegin != 0) {
    item.work.begin(now_);
    schedule(index, now_ + item.work.duration, false);
    return true;
  }
  item.work.end(now_);
  stream.ready = now_;
  stream.isBusy = false;
  stream.items.pop_front();
  pumpAll();
  return true;
}

}  // namespace stowage::runtime
