// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/stalls.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <optional>

namespace stowage::planner {

namespace {

class StallFinder {
 public:
  StallFinder(const WaitsOfActions& waits, Timetable& timetable)
      : waits_(waits), result_(timetable), isBlamed_(timetable.actions.size(), false) {}

  // A launch that starts after its predecessor's end and after it was enqueued waited for the
  // command that ended last.
  std::vector<bool> run() {
    Nanoseconds free;
    size_t placed = 0;  // of stallsAt: those with a node
    for (size_t i = 0; i < result_.actions.size(); ++i) {
      const TimedAction& action = result_.actions[i];
      if (action.command.stream != ir::Stream::kCompute) continue;
      if (!waits_.enqueued.empty()) free = std::max(free, waits_.enqueued[i]);
      if (action.start > free) note(i, action.start - free);
      free = action.end;
      if (action.command.recompute > 0) continue;
      for (; placed < result_.stallsAt.size(); ++placed) {
        result_.stallsAt[placed].node = action.command.node;
      }
    }
    return std::move(isBlamed_);
  }

 private:
  void note(size_t command, Nanoseconds time) {
    const bool meets = command > 0 && llvm::is_contained(waits_.meetings, command);
    const std::optional<size_t> last = meets ? lastBefore(command) : lastWait(command);
    if (last) isBlamed_[*last] = true;
    const StallAt stall{.isOut = last && isOn(*last, ir::Stream::kDeviceToHost),
                        .isRanks = last && isOn(*last, ir::Stream::kCollective),
                        .time = time};
    const bool isDisk = last && waitedForDisk(*last);
    (stall.isRanks ? result_.stalls.ranks
     : isDisk      ? result_.stalls.disk
     : stall.isOut ? result_.stalls.deviceToHost
                   : result_.stalls.hostToDevice) += time;
    result_.stallsAt.push_back(stall);
  }

  bool isOn(size_t action, ir::Stream stream) const {
    return result_.actions[action].command.stream == stream;
  }

  /// The one that all streams waited for.
  size_t lastBefore(size_t command) const {
    const auto end = [&](const TimedAction& a, const TimedAction& b) { return a.end < b.end; };
    const auto first = result_.actions.begin();
    return static_cast<size_t>(std::max_element(first, first + static_cast<int64_t>(command), end) -
                               first);
  }

  // A copy that started when the disk was done.
  bool waitedForDisk(size_t copy) const {
    const std::optional<size_t> last = lastWait(copy);
    if (!last) return false;
    const bool isDisk = isOn(*last, ir::Stream::kDiskRead) || isOn(*last, ir::Stream::kDiskWrite);
    const Nanoseconds start = result_.actions[copy].start;
    const Nanoseconds end = result_.actions[*last].end;
    return isDisk && (end == start || end - result_.stepTime == start);
  }

  std::optional<size_t> lastWait(size_t command) const {
    Nanoseconds latest(INT64_MIN);
    std::optional<size_t> last;
    const auto consider = [&](ir::CommandId id, Nanoseconds shift) {
      const TimedAction& other = result_.actions[id.index()];
      if (other.end - shift <= latest) return;
      latest = other.end - shift;
      last = id.index();
    };
    for (const ir::CommandId id : waits_.dependencies.wait[command]) consider(id, {});
    for (const ir::CommandId id : waits_.dependencies.prev[command]) consider(id, result_.stepTime);
    return last;
  }

  const WaitsOfActions& waits_;
  Timetable& result_;
  std::vector<bool> isBlamed_;
};

}  // namespace

std::vector<bool> attributeStalls(const WaitsOfActions& waits, Timetable& timetable) {
  return StallFinder(waits, timetable).run();
}

}  // namespace stowage::planner
