// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/byte_history.h"

#include <algorithm>

namespace stowage::planner {

namespace {

size_t slot(ir::Stream stream) { return static_cast<size_t>(stream); }

void raise(StreamClock& clock, ir::Stream stream, GlobalCommand command) {
  clock[slot(stream)] = std::max(clock[slot(stream)], command);
}

StreamClock noReaders() {
  StreamClock clock;
  clock.fill(-1);
  return clock;
}

}  // namespace

ByteHistory::Segments::iterator ByteHistory::splitAt(int64_t offset) {
  auto next = segments_.lower_bound(offset);
  if (next == segments_.begin()) return next;
  auto before = std::prev(next);
  if (before->second.end <= offset) return next;
  Segment tail = before->second;
  before->second.end = offset;
  return segments_.emplace_hint(next, offset, tail);
}

void ByteHistory::read(const ir::ByteRange& range, GlobalCommand command, ir::Stream stream,
                       StreamClock& waits) {
  if (range.isEmpty()) return;
  auto at = splitAt(range.begin);
  const auto end = splitAt(range.end);
  // The second split may have cut the segment that the first one found.
  at = segments_.lower_bound(range.begin);
  for (; at != end; ++at) {
    Segment& segment = at->second;
    if (segment.writer >= 0) raise(waits, segment.writerStream, segment.writer);
    raise(segment.readers, stream, command);
  }
}

void ByteHistory::write(const ir::ByteRange& range, GlobalCommand command, ir::Stream stream,
                        StreamClock& waits) {
  if (range.isEmpty()) return;
  splitAt(range.begin);
  const auto end = splitAt(range.end);
  const auto begin = segments_.lower_bound(range.begin);
  for (auto at = begin; at != end; ++at) {
    const Segment& segment = at->second;
    if (segment.writer >= 0) raise(waits, segment.writerStream, segment.writer);
    for (size_t s = 0; s < segment.readers.size(); ++s) {
      waits[s] = std::max(waits[s], segment.readers[s]);
    }
  }
  segments_.erase(begin, end);
  segments_.insert_or_assign(
      range.begin,
      Segment{.end = range.end, .writer = command, .writerStream = stream, .readers = noReaders()});
}

}  // namespace stowage::planner
