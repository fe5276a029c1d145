// SPDX-License-Identifier: Apache-2.0
//
// Lets a caller look at a search and end it early. Nothing else in the planner depends on a clock:
// without a watch the same question has the same answer.
#ifndef STOWAGE_PLANNER_SEARCH_SEARCH_WATCH_H_
#define STOWAGE_PLANNER_SEARCH_SEARCH_WATCH_H_

#include <cstdint>
#include <functional>
#include <utility>

namespace stowage::planner {

class SearchWatch {
 public:
  /// `isOver`: asked between searches, true from some moment on; null: never. `found`: told the
  /// nanoseconds of a step whenever a plan that fits is faster than those before; null: nobody.
  SearchWatch(std::function<bool()> isOver, std::function<void(int64_t stepTime)> found)
      : isOver_(std::move(isOver)), found_(std::move(found)) {}

  /// True if it is over and the search has a plan. The search for a first one goes on.
  bool ends(bool hasPlan) {
    const bool ends = (hasPlan || hasAnswer_) && isOver_ && isOver_();
    wasEnded_ = wasEnded_ || ends;
    return ends;
  }
  /// Is there an answer whatever a search finds?
  void setAnswer(bool isThere) { hasAnswer_ = isThere; }
  void tell(int64_t stepTime) {
    if (stepTime >= fastest_) return;
    fastest_ = stepTime;
    if (found_) found_(stepTime);
  }
  /// A search has stopped before its end: a faster plan may have been missed.
  bool wasEnded() const { return wasEnded_; }

 private:
  std::function<bool()> isOver_;
  std::function<void(int64_t)> found_;
  int64_t fastest_ = INT64_MAX;
  bool hasAnswer_ = false;
  bool wasEnded_ = false;
};

/// Without a watch no search ends early.
inline bool endsEarly(SearchWatch* watch, bool hasPlan) {
  return watch != nullptr && watch->ends(hasPlan);
}

/// While one lives, nobody watches, so that what is kept for later questions is whole.
class WatchPause {
 public:
  /// `watch`: where the watch is noted.
  explicit WatchPause(SearchWatch*& watch) : at_(&watch), paused_(std::exchange(watch, nullptr)) {}
  ~WatchPause() { *at_ = paused_; }
  WatchPause(const WatchPause&) = delete;
  WatchPause& operator=(const WatchPause&) = delete;

 private:
  SearchWatch** at_;
  SearchWatch* paused_;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_SEARCH_SEARCH_WATCH_H_
