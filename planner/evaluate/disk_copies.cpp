// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/disk_copies.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <map>
#include <utility>

#include "ir/schedule/disk_block.h"

namespace stowage::planner {

namespace {

using Kind = EnqueuedCommand::Kind;

constexpr int64_t kFreeRing = int64_t{1} << 30;  // of each ring, where the host is not limited

int64_t roundToBlock(int64_t bytes) { return roundUp(Bytes(bytes), ir::kDiskBlock).value(); }

/// Bytes of one ring, and what passes it in a step.
struct Ring {
  int64_t begin = 0;
  int64_t capacity = 0;
  int64_t largest = 0;
  int64_t sum = 0;
  int64_t next = 0;  // behind the last one

  void count(int64_t bytes) {
    largest = std::max(largest, bytes);
    sum += bytes;
  }
  void setCapacity(int64_t wanted) { capacity = std::max(largest, std::min(sum, wanted)); }
  int64_t take(int64_t bytes) {
    if (next + bytes > capacity) next = 0;
    return begin + std::exchange(next, next + bytes);
  }
};

/// Who used the bytes of a ring last, as a position in the enqueue order.
class RingUsers {
 public:
  /// The latest user of [begin, end), which `position` uses now; `none` if nobody did.
  int64_t replace(int64_t begin, int64_t end, int64_t position, int64_t none) {
    int64_t latest = none;
    splitAt(begin);
    splitAt(end);
    const auto last = users_.lower_bound(end);
    for (auto at = users_.lower_bound(begin); at != last; at = users_.erase(at)) {
      latest = std::max(latest, at->second.second);
    }
    users_[begin] = {end, position};
    return latest;
  }

 private:
  void splitAt(int64_t offset) {
    auto at = users_.upper_bound(offset);
    if (at == users_.begin()) return;
    --at;
    if (at->first == offset || at->second.first <= offset) return;
    users_[offset] = at->second;
    at->second.first = offset;
  }
  std::map<int64_t, std::pair<int64_t, int64_t>> users_;  // begin: (end, position)
};

class Adder {
 public:
  Adder(const GapTable& table, const Expansion& expansion, std::vector<EnqueuedCommand>& commands)
      : table_(table),
        x_(expansion),
        commands_(commands),
        count_(static_cast<int64_t>(commands.size())) {}

  DiskCopies add(int64_t residentBytes) {
    result_.hostPeak = residentBytes;
    result_.writes.assign(x_.offloads.size(), -1);
    result_.reads.assign(x_.prefetches.size(), -1);
    result_.readsEarly.assign(x_.prefetches.size(), false);
    result_.extents.assign(x_.onDisk.size(), -1);
    if (!llvm::is_contained(x_.onDisk, true)) return std::move(result_);
    makeRings(residentBytes);
    placeOnDisk();
    findPlaces();
    findReads();
    insert();
    return std::move(result_);
  }

 private:
  // Places in the order: behind command i is 2 * i + 1, first in the step 0; in the step before,
  // 2 * count_ less.
  struct Read {
    int32_t prefetch = -1;
    int64_t place = 0;
  };
  static int64_t behind(int64_t command) { return 2 * command + 1; }

  ir::StorageId storageOf(const EnqueuedCommand& command) const {
    const auto index = static_cast<size_t>(command.index);
    const int32_t range = command.kind == Kind::kOffload ? x_.offloads[index].liveRange
                                                         : x_.prefetches[index].liveRange;
    return x_.liveRanges[static_cast<size_t>(range)].storage;
  }
  int64_t bytesOf(const EnqueuedCommand& command) const {
    return roundToBlock(table_.bytes(storageOf(command)));
  }
  bool isForDisk(const EnqueuedCommand& command, Kind kind) const {
    return command.kind == kind && x_.onDisk[storageOf(command).index()];
  }

  void makeRings(int64_t residentBytes) {
    for (const EnqueuedCommand& command : commands_) {
      if (isForDisk(command, Kind::kOffload)) out_.count(bytesOf(command));
      if (isForDisk(command, Kind::kPrefetch)) in_.count(bytesOf(command));
    }
    out_.begin = roundToBlock(residentBytes);
    const int64_t limit = table_.problem().limits.host.value();
    const int64_t free = limit / ir::kDiskBlock * ir::kDiskBlock - out_.begin;
    const bool isLimited = limit < INT64_MAX / 4;
    const double share = static_cast<double>(out_.sum) / static_cast<double>(out_.sum + in_.sum);
    const auto forWrites = static_cast<int64_t>(static_cast<double>(free) * share);
    const int64_t most = std::min(forWrites, free - in_.largest);
    out_.setCapacity(isLimited ? most / ir::kDiskBlock * ir::kDiskBlock : kFreeRing);
    in_.setCapacity(isLimited ? free - out_.capacity : kFreeRing);
    in_.begin = out_.begin + out_.capacity;
    result_.hostPeak = in_.begin + in_.capacity;
  }

  void placeOnDisk() {
    for (size_t i = 0; i < x_.onDisk.size(); ++i) {
      if (!x_.onDisk[i] || !x_.hostAtBoundary[i].needed) continue;
      result_.extents[i] = result_.diskPeak;
      result_.diskPeak += roundToBlock(table_.bytes(ir::StorageId(i)));
    }
  }

  void findPlaces() {
    launchAt_.assign(x_.launches.size(), -1);  // the step boundary is no command
    writtenAt_.resize(x_.onDisk.size());
    for (int64_t i = 0; i < count_; ++i) {
      const EnqueuedCommand& command = commands_[static_cast<size_t>(i)];
      const auto index = static_cast<size_t>(command.index);
      if (command.kind == Kind::kLaunch) launchAt_[index] = i;
      if (isForDisk(command, Kind::kOffload)) {
        result_.writes[index] = out_.take(bytesOf(command));
        writtenAt_[storageOf(command).index()].push_back(i);
      }
      if (isForDisk(command, Kind::kPrefetch)) result_.reads[index] = in_.take(bytesOf(command));
    }
  }

  // Over two steps: what the first one leaves in the ring is there in the second.
  void findReads() {
    RingUsers users;
    for (int64_t i = -count_; i < count_; ++i) {
      const EnqueuedCommand& command = commands_[static_cast<size_t>((i + count_) % count_)];
      if (!isForDisk(command, Kind::kPrefetch)) continue;
      const auto index = static_cast<size_t>(command.index);
      const int64_t begin = result_.reads[index];
      const int64_t user = users.replace(begin, begin + bytesOf(command), i, i - count_);
      if (i < 0) continue;
      const int64_t known = std::max(user, writtenBefore(storageOf(command), i));
      reads_.push_back({command.index, std::max(behind(known), gapBegin(index, i))});
    }
  }

  int64_t writtenBefore(ir::StorageId storage, int64_t position) const {
    int64_t latest = position - count_;
    for (const int64_t at : writtenAt_[storage.index()]) {
      latest = std::max(latest, at < position ? at : at - count_);
    }
    return latest;
  }

  // The prefetch at `position` brings back what a launch used last.
  int64_t gapBegin(size_t prefetch, int64_t position) const {
    const int64_t launches = x_.launchCount();
    const int64_t release = x_.prefetches[prefetch].release;
    const int64_t at = launchAt_[static_cast<size_t>((release % launches + launches) % launches)];
    if (at < 0) return release < 0 ? -2 * count_ : 0;
    return behind(at < position ? at : at - count_);
  }

  // In one place, those of this step come before those of the next one.
  void insert() {
    std::vector<std::vector<int32_t>> reads(commands_.size() + 1);  // the first: first in the step
    for (const bool early : {false, true}) {
      for (const Read& read : reads_) {
        if ((read.place < 0) != early) continue;
        result_.readsEarly[static_cast<size_t>(read.prefetch)] = early;
        const int64_t place = early ? read.place + 2 * count_ : read.place;
        reads[static_cast<size_t>((place + 1) / 2)].push_back(read.prefetch);
      }
    }
    std::vector<EnqueuedCommand> all;
    for (size_t i = 0; i < reads.size(); ++i) {
      if (i > 0) addCommand(commands_[i - 1], all);
      for (const int32_t prefetch : reads[i]) {
        all.push_back({.kind = Kind::kDiskRead, .index = prefetch});
      }
    }
    commands_ = std::move(all);
  }

  void addCommand(const EnqueuedCommand& command, std::vector<EnqueuedCommand>& all) const {
    all.push_back(command);
    if (!isForDisk(command, Kind::kOffload)) return;
    all.push_back({.kind = Kind::kDiskWrite, .index = command.index});
  }

  const GapTable& table_;
  const Expansion& x_;
  std::vector<EnqueuedCommand>& commands_;
  int64_t count_;
  Ring out_, in_;
  std::vector<int64_t> launchAt_;                // by launch: its command
  std::vector<std::vector<int64_t>> writtenAt_;  // by storage: its offloads
  std::vector<Read> reads_;
  DiskCopies result_;
};

}  // namespace

DiskCopies addDiskCopies(const GapTable& table, const Expansion& expansion, int64_t residentBytes,
                         std::vector<EnqueuedCommand>& commands) {
  return Adder(table, expansion, commands).add(residentBytes);
}

}  // namespace stowage::planner
