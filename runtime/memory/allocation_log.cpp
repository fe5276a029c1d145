// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/allocation_log.h"

#include <map>
#include <string>

namespace stowage::runtime {

namespace {

constexpr int32_t kNever = -1;

}  // namespace

void AllocationLog::addAllocation(const void* address, Bytes bytes, AllocatingThread thread) {
  const std::lock_guard<std::mutex> lock(mutex_);
  events_.push_back({address, bytes, thread, false});
}

void AllocationLog::addRelease(const void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  events_.push_back({address, Bytes(0), AllocatingThread::kMain, true});
}

// By event: for an allocation the event that releases it, for a release the one that allocated.
std::vector<int32_t> AllocationLog::findReleases() const {
  std::vector<int32_t> partner(events_.size(), kNever);
  std::map<const void*, size_t> live;
  for (size_t i = 0; i < events_.size(); ++i) {
    if (!events_[i].isRelease) {
      live[events_[i].address] = i;
    } else if (const auto found = live.find(events_[i].address); found != live.end()) {
      partner[found->second] = static_cast<int32_t>(i);
      partner[i] = static_cast<int32_t>(found->second);
      live.erase(found);
    }
  }
  return partner;
}

ir::Error AllocationLog::findResults(llvm::ArrayRef<const void*> results,
                                     llvm::ArrayRef<int32_t> releases, ir::OpCost& cost,
                                     std::vector<bool>& isResult) const {
  for (const void* result : results) {
    int32_t ordinal = 0;
    int32_t found = kNever;
    for (size_t i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      if (event.isRelease || event.thread != AllocatingThread::kMain) continue;
      if (event.address == result && releases[i] == kNever) {
        found = ordinal;
        isResult[i] = true;
      }
      ++ordinal;
    }
    if (found == kNever) {
      return ir::makeError(ir::ErrorCode::kUnsupported,
                           "a result was not allocated by the thread that called the op");
    }
    cost.resultOrdinals.push_back(found);
  }
  return ir::success();
}

ir::Error AllocationLog::summarize(llvm::ArrayRef<const void*> results, int64_t unit,
                                   ir::OpCost& cost) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::vector<int32_t> releases = findReleases();
  std::vector<bool> isResult(events_.size(), false);
  cost.resultOrdinals.clear();
  if (ir::Error error = findResults(results, releases, cost, isResult)) return error;
  FirstFit region(unit);
  Bytes others;
  cost.allocations = 0;
  std::map<int32_t, int64_t> offsets;  // of live blocks, by event
  for (size_t i = 0; i < events_.size(); ++i) {
    const Event& event = events_[i];
    const auto index = static_cast<int32_t>(i);
    if (event.isRelease) {
      const auto found = offsets.find(releases[i]);
      if (found != offsets.end()) region.release(found->second);
      continue;
    }
    ++cost.allocations;
    if (isResult[i]) continue;
    if (releases[i] == kNever) {
      return ir::makeError(
          ir::ErrorCode::kUnsupported,
          "keeps " + std::to_string(event.bytes.value()) + " bytes of temporaries after its call");
    }
    if (event.thread == AllocatingThread::kOther) {
      others += std::max(roundUp(event.bytes, unit), Bytes(unit));
    } else {
      offsets[index] = *region.take(event.bytes, Bytes(INT64_MAX));
    }
  }
  cost.temporary = region.peak() + others;
  return ir::success();
}

}  // namespace stowage::runtime
