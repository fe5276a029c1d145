// SPDX-License-Identifier: Apache-2.0
//
// The largest size (batch, sequence) whose step fits in a budget, by as few plans as possible. What
// fits also fits in more, and so does every smaller size. An infeasible answer tells the smallest
// budget that works, so one budget's answers shorten the search for the next.
// The Python package has the same search (runtime/python/stowage/_fit.py); a test of it compares
// them. Not here: models, plans.
#ifndef STOWAGE_TOOLS_PLANNING_FIT_SEARCH_H_
#define STOWAGE_TOOLS_PLANNING_FIT_SEARCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "ir/base/error.h"
#include "ir/base/units.h"

namespace stowage::tools {

struct FitRow {
  int64_t size = 0;
  int64_t tokens = 0;
  Bytes peak;
  Nanoseconds stepTime;
  double nsPerToken() const;
};

/// A size does not fit.
struct FitLack {
  bool isDevice = true;  // else the host's limit is what it exceeds
  Bytes smallest;        // of that memory, which would do
};
using FitAnswer = std::variant<FitRow, FitLack>;

/// Those that are tried: multiples of `multipleOf`. There is one.
struct FitSizes {
  int64_t least = 1;
  int64_t most = 4096;
  int64_t multipleOf = 1;
  int64_t first() const { return (least + multipleOf - 1) / multipleOf * multipleOf; }
  int64_t last() const { return most / multipleOf * multipleOf; }
};

class FitSearch {
 public:
  using PlanFor = std::function<ir::Expected<FitAnswer>(int64_t size, Bytes budget)>;
  FitSearch(PlanFor planFor, const FitSizes& sizes) : planFor_(std::move(planFor)), sizes_(sizes) {}

  /// 0: none fits. Errors: of planFor.
  ir::Expected<int64_t> find(Bytes budget);
  /// Of the largest size. Errors: of planFor.
  ir::Expected<std::optional<FitRow>> findRow(Bytes budget);
  /// Sizes that were tried and fit, in order.
  std::vector<FitRow> rows(Bytes budget) const;
  /// What follows it, or the first one for 0.
  int64_t sizeAfter(int64_t size) const;
  /// Nothing when the size was not tried, or fits.
  std::optional<FitLack> lackOf(int64_t size, Bytes budget) const;

 private:
  ir::Expected<bool> fits(int64_t size, Bytes budget);

  PlanFor planFor_;
  FitSizes sizes_;
  std::map<std::pair<int64_t, Bytes>, FitAnswer> found_;  // by size and budget
};

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_PLANNING_FIT_SEARCH_H_
