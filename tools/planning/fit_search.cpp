// SPDX-License-Identifier: Apache-2.0
#include "tools/planning/fit_search.h"

#include <algorithm>

namespace stowage::tools {

double FitRow::nsPerToken() const {
  return static_cast<double>(stepTime.value()) / static_cast<double>(std::max<int64_t>(tokens, 1));
}

ir::Expected<bool> FitSearch::fits(int64_t size, Bytes budget) {
  const std::pair<int64_t, Bytes> key{size, budget};
  auto found = found_.find(key);
  if (found == found_.end()) {
    ir::Expected<FitAnswer> answer = planFor_(size, budget);
    if (!answer) return answer.takeError();
    found = found_.emplace(key, *answer).first;
  }
  return std::holds_alternative<FitRow>(found->second);
}

ir::Expected<int64_t> FitSearch::find(Bytes budget) {
  const int64_t step = sizes_.multipleOf;
  const int64_t beyond = sizes_.last() + step;
  int64_t most = sizes_.first() - step;  // none
  int64_t fails = beyond;
  for (const auto& [key, answer] : found_) {
    const auto* lack = std::get_if<FitLack>(&answer);
    const bool tells = lack != nullptr && lack->isDevice;
    if (tells ? lack->smallest <= budget : lack == nullptr && key.second <= budget) {
      most = std::max(most, key.first);
    } else if (tells || (lack != nullptr && key.second >= budget)) {
      fails = std::min(fails, key.first);
    }
  }
  // Doubles while sizes fit, then halves the distance.
  while (fails == beyond && most < sizes_.last()) {
    const bool isFirst = most < sizes_.first();
    const int64_t size = isFirst ? sizes_.first() : std::min(2 * most, sizes_.last());
    ir::Expected<bool> does = fits(size, budget);
    if (!does) return does.takeError();
    (*does ? most : fails) = size;
  }
  while (fails - most > step) {
    const int64_t middle = (most + fails) / (2 * step) * step;
    ir::Expected<bool> does = fits(middle, budget);
    if (!does) return does.takeError();
    (*does ? most : fails) = middle;
  }
  return most < sizes_.first() ? 0 : most;
}

ir::Expected<std::optional<FitRow>> FitSearch::findRow(Bytes budget) {
  ir::Expected<int64_t> largest = find(budget);
  if (!largest) return largest.takeError();
  for (int64_t size = *largest; size >= sizes_.first(); size -= sizes_.multipleOf) {
    ir::Expected<bool> does = fits(size, budget);
    if (!does) return does.takeError();
    if (*does) return std::get<FitRow>(found_.at({size, budget}));
  }
  return std::nullopt;
}

int64_t FitSearch::sizeAfter(int64_t size) const {
  return std::max(size + sizes_.multipleOf, sizes_.first());
}

std::vector<FitRow> FitSearch::rows(Bytes budget) const {
  std::vector<FitRow> rows;
  for (const auto& [key, answer] : found_) {
    const auto* row = std::get_if<FitRow>(&answer);
    if (row != nullptr && key.second == budget) rows.push_back(*row);
  }
  return rows;
}

std::optional<FitLack> FitSearch::lackOf(int64_t size, Bytes budget) const {
  const auto found = found_.find({size, budget});
  if (found == found_.end()) return std::nullopt;
  const auto* lack = std::get_if<FitLack>(&found->second);
  return lack == nullptr ? std::nullopt : std::optional<FitLack>(*lack);
}

}  // namespace stowage::tools
