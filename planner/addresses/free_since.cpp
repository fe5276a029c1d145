// SPDX-License-Identifier: Apache-2.0
#include "planner/addresses/free_since.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace stowage::planner {

namespace {

// By byte: the tick at which its latest user was done.
class LastUse {
 public:
  void set(int64_t begin, int64_t end, int64_t tick) {
    cut(begin);
    cut(end);
    ends_.erase(ends_.lower_bound(begin), ends_.lower_bound(end));
    ends_[begin] = {end, tick};
  }
  int64_t latest(int64_t begin, int64_t end) const {
    int64_t tick = INT64_MIN / 2;  // of bytes that nobody has used yet
    auto at = ends_.upper_bound(begin);
    if (at != ends_.begin()) --at;
    for (; at != ends_.end() && at->first < end; ++at) {
      if (at->second.first > begin) tick = std::max(tick, at->second.second);
    }
    return tick;
  }

 private:
  void cut(int64_t offset) {
    auto at = ends_.upper_bound(offset);
    if (at == ends_.begin()) return;
    --at;
    const auto [end, tick] = at->second;
    if (at->first >= offset || end <= offset) return;
    at->second.first = offset;
    ends_[offset] = {end, tick};
  }

  std::map<int64_t, std::pair<int64_t, int64_t>> ends_;  // by first byte: (end, tick)
};

struct Event {
  int64_t tick;
  bool isBegin;  // ends first
  int32_t item;
  friend bool operator<(const Event& a, const Event& b) {
    return std::tie(a.tick, a.isBegin, a.item) < std::tie(b.tick, b.isBegin, b.item);
  }
};

}  // namespace

std::vector<int64_t> findDelays(llvm::ArrayRef<ArenaItem> items,
                                const std::vector<int64_t>& offsets, int64_t period) {
  std::vector<Event> events;
  for (size_t i = 0; i < items.size(); ++i) {
    const ArenaItem& item = items[i];
    if (item.bytes == 0 || item.alive.isEmpty()) continue;
    if (item.alive.end - item.alive.begin >= period) continue;
    const auto index = static_cast<int32_t>(i);
    events.push_back({item.alive.end % period, false, index});
    if (item.latest > item.alive.begin) events.push_back({item.latest % period, true, index});
  }
  std::sort(events.begin(), events.end());
  std::vector<int64_t> delays(items.size(), 0);
  LastUse lastUse;
  // Twice around: what is free since the end of the step before is known the second time.
  for (const int64_t turn : {int64_t{0}, period}) {
    for (const Event& event : events) {
      const auto i = static_cast<size_t>(event.item);
      const int64_t begin = offsets[i];
      const int64_t end = begin + items[i].bytes;
      if (!event.isBegin) {
        lastUse.set(begin, end, event.tick + turn);
        continue;
      }
      const int64_t wished = event.tick + turn - (items[i].latest - items[i].alive.begin);
      delays[i] = std::max<int64_t>(0, lastUse.latest(begin, end) - wished);
    }
  }
  return delays;
}

}  // namespace stowage::planner
