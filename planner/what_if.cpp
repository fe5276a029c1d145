// SPDX-License-Identifier: Apache-2.0
#include "planner/what_if.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/plan.h"

namespace stowage::planner {

namespace {

constexpr size_t kPlansUpTo = 300;   // nodes; from there on plans take more than seconds
constexpr int64_t kMemoryPart = 10;  // of the budget
constexpr int64_t kNoticed = 1000;   // a part of the step

class Asker {
 public:
  Asker(const Problem& problem, Bytes budget, Nanoseconds stepTime, Nanoseconds ranksStall)
      : problem_(problem),
        budget_(budget),
        isPlanned_(problem.graph.nodes().size() <= kPlansUpTo),
        // A quick answer knows no waits for other ranks.
        best_(isPlanned_ ? stepTime : stepTime - ranksStall),
        noticed_(stepTime.value() / kNoticed) {}

  ir::Expected<std::vector<WhatIf>> run() {
    ir::Expected<Planner> planner = Planner::make(problem_);
    if (!planner) return planner.takeError();
    if (isPlanned_) {
      ir::Expected<std::optional<Nanoseconds>> again = timeOf(*planner, budget_);
      if (!again) return again.takeError();
      add({.change = Change::kAgain}, *again);
      if (*again) best_ = std::min(best_, **again);
    }
    const int64_t align = problem_.target.alignBytes;
    const Bytes more = roundUp(Bytes(budget_.value() / kMemoryPart), align);
    ir::Expected<std::optional<Nanoseconds>> larger = timeOf(*planner, budget_ + more);
    if (!larger) return larger.takeError();
    add({.change = Change::kMemory, .bytes = more}, *larger);
    if (ir::Error error = askLink()) return error;
    if (ir::Error error = askHost()) return error;
    return std::move(answers_);
  }

 private:
  /// Nothing where no plan fits.
  ir::Expected<std::optional<Nanoseconds>> timeOf(Planner& planner, Bytes budget) const {
    if (!isPlanned_) return std::optional(planner.leastTime(budget));
    ir::Expected<PlanResult> result = planner.plan(budget);
    if (result) return std::optional(result->timetable.stepTime);
    ir::PlanError error = ir::takePayload(result.takeError());
    if (error.code() != ir::ErrorCode::kInfeasible) return ir::makeError(std::move(error));
    return std::nullopt;
  }

  void add(WhatIf what, std::optional<Nanoseconds> time) {
    if (!time || best_ - *time <= noticed_) return;
    what.saved = best_ - *time;
    what.isAtMost = !isPlanned_;
    answers_.push_back(what);
  }

  ir::Error ask(const Problem& changed, WhatIf what) {
    ir::Expected<Planner> planner = Planner::make(changed);
    if (!planner) return planner.takeError();
    ir::Expected<std::optional<Nanoseconds>> time = timeOf(*planner, budget_);
    if (!time) return time.takeError();
    add(what, *time);
    return ir::success();
  }

  ir::Error askLink() {
    Problem faster = problem_;
    const BytesPerSecond rate = faster.costs.links.hostToDevice.bandwidth;
    for (ir::LinkRate* link : {&faster.costs.links.hostToDevice, &faster.costs.links.deviceToHost})
      link->bandwidth = link->bandwidth + link->bandwidth;
    return ask(faster, {.change = Change::kLink, .rate = rate});
  }

  ir::Error askHost() {
    if (problem_.limits.host >= Limits().host) return ir::success();
    Problem unlimited = problem_;
    unlimited.limits.host = Limits().host;
    return ask(unlimited, {.change = Change::kHostMemory});
  }

  const Problem& problem_;
  Bytes budget_;
  bool isPlanned_;
  Nanoseconds best_;  // of the plan, or of a plan with nothing more
  Nanoseconds noticed_;
  std::vector<WhatIf> answers_;
};

}  // namespace

const char* changeName(Change change) {
  switch (change) {
    case Change::kAgain:
      return "plan-again";
    case Change::kLink:
      return "link";
    case Change::kMemory:
      return "memory";
    case Change::kHostMemory:
      return "host-memory";
  }
  return "";
}

ir::Expected<std::vector<WhatIf>> askWhatIf(const Problem& problem, Bytes budget,
                                            Nanoseconds stepTime, Nanoseconds ranksStall) {
  return Asker(problem, budget, stepTime, ranksStall).run();
}

}  // namespace stowage::planner
