// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/rate_shares.h"

#include <algorithm>

namespace stowage::planner {

namespace {

struct Span {
  int64_t begin = 0;
  int64_t end = 0;
};

/// When a stream is busy, over the step and those before and after it; ascending, without overlap.
class BusySpans {
 public:
  BusySpans(llvm::ArrayRef<ir::Stream> streams, ir::Stream stream, const Timeline& timeline) {
    constexpr int64_t kStepsBeside = 2;  // a copy may begin steps before the one that needs it
    for (int64_t step = -kStepsBeside; step <= kStepsBeside; ++step) {
      const int64_t shift = step * timeline.stepTime.value();
      for (size_t i = 0; i < streams.size(); ++i) {
        if (streams[i] != stream) continue;
        const int64_t last = spans_.empty() ? INT64_MIN : spans_.back().end;
        const int64_t begin = std::max(last, timeline.start[i].value() + shift);
        const int64_t end = timeline.end[i].value() + shift;
        if (begin < end) spans_.push_back({begin, end});
      }
    }
  }

  /// How much of it lies between two moments.
  int64_t within(int64_t begin, int64_t end) const {
    int64_t sum = 0;
    const auto first = std::partition_point(spans_.begin(), spans_.end(),
                                            [&](const Span& span) { return span.end <= begin; });
    for (auto at = first; at != spans_.end() && at->begin < end; ++at) {
      sum += std::min(end, at->end) - std::max(begin, at->begin);
    }
    return sum;
  }

 private:
  std::vector<Span> spans_;
};

/// With a share `part / whole` of its time beside the other.
int64_t stretched(int64_t alone, int64_t part, int64_t whole, int permille) {
  const double beside = static_cast<double>(part) / static_cast<double>(whole);
  const double rate = 1.0 - beside * (1000 - permille) / 1000.0;
  return static_cast<int64_t>(static_cast<double>(alone) / rate);
}

}  // namespace

std::vector<RateShare> findRateShares(const ir::LinkModel& links) {
  std::vector<RateShare> shares;
  const auto add = [&](ir::Stream stream, ir::Stream beside, int permille) {
    if (permille < 1000) shares.push_back({stream, beside, permille});
  };
  add(ir::Stream::kDiskRead, ir::Stream::kDiskWrite, links.diskBothPermille);
  add(ir::Stream::kDiskWrite, ir::Stream::kDiskRead, links.diskBothPermille);
  add(ir::Stream::kHostToDevice, ir::Stream::kHostCompute, links.besideHostPermille);
  add(ir::Stream::kCompute, ir::Stream::kCollective, links.besideRanksPermille);
  return shares;
}

std::vector<int64_t> stretchDurations(llvm::ArrayRef<ir::Stream> streams,
                                      llvm::ArrayRef<int64_t> alone,
                                      llvm::ArrayRef<RateShare> shares, const Timeline& timeline) {
  std::vector<int64_t> durations = alone.vec();
  for (const RateShare& share : shares) {
    const BusySpans busy(streams, share.beside, timeline);
    for (size_t i = 0; i < streams.size(); ++i) {
      const int64_t begin = timeline.start[i].value();
      const int64_t end = timeline.end[i].value();
      if (streams[i] != share.stream || begin == end) continue;
      durations[i] = stretched(alone[i], busy.within(begin, end), end - begin, share.permille);
    }
  }
  return durations;
}

}  // namespace stowage::planner
