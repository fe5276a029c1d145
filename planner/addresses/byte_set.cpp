// SPDX-License-Identifier: Apache-2.0
#include "planner/addresses/byte_set.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace stowage::planner {

namespace {

constexpr int64_t kNoEnd = INT64_MAX / 2;

}  // namespace

bool ByteSet::insert(const ByteSpan& bytes) {
  const auto first =
      std::lower_bound(spans_.begin(), spans_.end(), bytes.begin,
                       [](const ByteSpan& span, int64_t begin) { return span.end < begin; });
  if (first == spans_.end() || first->begin > bytes.end) {
    spans_.insert(first, bytes);
    return true;
  }
  if (first->begin <= bytes.begin && bytes.end <= first->end) return false;
  auto last = first + 1;
  while (last != spans_.end() && last->begin <= bytes.end) ++last;
  first->begin = std::min(first->begin, bytes.begin);
  first->end = std::max((last - 1)->end, bytes.end);
  spans_.erase(first + 1, last);
  return true;
}

void Holes::reset(int64_t base, int64_t least) {
  least_ = least;
  holes_.assign(1, {base, kNoEnd});
}

void Holes::subtract(llvm::ArrayRef<ByteSpan> taken) {
  if (taken.empty()) return;
  left_.clear();
  size_t next = 0;
  int64_t top = 0;  // of what was seen
  for (const ByteSpan& hole : holes_) {
    top = std::max(top, hole.begin);
    for (; next < taken.size() && taken[next].begin < hole.end; ++next) {
      keep(top, taken[next].begin);
      top = std::max(top, taken[next].end);
    }
    keep(top, hole.end);
  }
  std::swap(holes_, left_);
}

int64_t Holes::smallest() const {
  assert(!holes_.empty() && "the last hole has no end");
  const auto isSmaller = [](const ByteSpan& a, const ByteSpan& b) {
    return a.end - a.begin < b.end - b.begin;
  };
  return std::min_element(holes_.begin(), holes_.end(), isSmaller)->begin;
}

}  // namespace stowage::planner
