// SPDX-License-Identifier: Apache-2.0
#include "planner/evaluate/evaluate.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/evaluate/evaluation.h"

namespace stowage::planner {

namespace {

// Pins are the asker's; a pinned row stays even when it changes nothing. Reasons are those of what
// came of it, for an edited row may no longer be what its reason says.
void carryOverNotes(const Decisions& asked, Decisions& made) {
  const auto before = [](const ir::DecisionRow& a, const ir::DecisionRow& b) {
    return std::pair(a.storage, a.gapBegin) < std::pair(b.storage, b.gapBegin);
  };
  std::vector<ir::DecisionRow> rows;
  for (const ir::DecisionRow& row : asked.rows) {
    const auto at = std::lower_bound(made.rows.begin(), made.rows.end(), row, before);
    const bool isMade = at != made.rows.end() && !before(row, *at);
    if (!row.pinned && !isMade) continue;
    rows.push_back(row);
    if (!row.pinned) rows.back().why = at->why;
    if (row.pinned && row.why.empty()) rows.back().why = "pinned";
  }
  std::sort(rows.begin(), rows.end(), before);
  made.rows = std::move(rows);
}

}  // namespace

ir::Expected<Timetable> evaluate(const Problem& problem, const Decisions& decisions,
                                 Bytes prefetchLimit) {
  const GapTable table(problem);
  ir::Expected<Actions> actions = actionsOf(table, decisions);
  if (!actions) return actions.takeError();
  ir::Expected<Timetable> timetable = evaluateActions(table, *actions, prefetchLimit.value());
  if (!timetable) return timetable.takeError();
  carryOverNotes(decisions, timetable->decisions);
  return timetable;
}

ir::Expected<Timetable> evaluateWithin(const Problem& problem, const Decisions& decisions,
                                       Bytes budget, Bytes prefetchLimit) {
  const GapTable table(problem);
  ir::Expected<Actions> actions = actionsOf(table, decisions);
  if (!actions) return actions.takeError();
  std::optional<Timetable> lowest;
  do {
    ir::Expected<Timetable> next = evaluateActions(table, *actions, prefetchLimit.value());
    if (!next) return next.takeError();
    if (!lowest || next->devicePeak < lowest->devicePeak) lowest = std::move(*next);
    if (lowest->devicePeak <= budget) break;
    prefetchLimit = Bytes(
        lowerPrefetchLimit(prefetchLimit.value(), budget.value(), lowest->devicePeak.value()));
  } while (prefetchLimit > Bytes(0));
  carryOverNotes(decisions, lowest->decisions);
  return std::move(*lowest);
}

}  // namespace stowage::planner
