// SPDX-License-Identifier: Apache-2.0
//
// A limit of the host keeps the promises of a device budget: at a fixed budget more of the host
// never hurts, down to having no limit at all, and more budget never hurts at a fixed limit; the
// limit that an infeasible error names works, one unit of alignment less is infeasible, the plan
// for it needs all of it, and the same is named whatever was asked.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "planner/plan.h"
#include "tests/support/random_step.h"

namespace stowage::planner {
namespace {

constexpr int kHosts = 12;

class HostLimit : public testing::TestWithParam<int> {
 protected:
  HostLimit()
      : seed_(static_cast<uint64_t>(GetParam())),
        graph_(tests::makeRandomStep({.seed = seed_, .layers = 1 + GetParam() % 5})),
        target_(tests::makeSmallTarget(seed_)),
        problem_(llvm::cantFail(
            makeProblem(graph_, target_, tests::makeRandomCosts(graph_, seed_, 300)))),
        planner_(llvm::cantFail(Planner::make(limited(Bytes(1))))) {}

  Problem& limited(Bytes host) {
    problem_.limits.host = host;
    return problem_;
  }
  ir::Expected<PlanResult> ask(Bytes budget, Bytes host) {
    limited(host);
    return planner_.plan(budget);
  }
  /// The host bytes that an infeasible error asks for; nothing if it is about the device.
  std::optional<Bytes> need(Bytes budget, Bytes host) {
    ir::Expected<PlanResult> result = ask(budget, host);
    if (result) return std::nullopt;
    const ir::PlanError error = ir::takePayload(result.takeError());
    if (!error.infeasible() || error.infeasible()->space != "host") return std::nullopt;
    EXPECT_FALSE(error.infeasible()->lacksDevice) << error.text();
    return error.infeasible()->smallestBudget;
  }

  /// Budgets that have a plan where the host is not limited, rising: the smallest one first.
  std::vector<Bytes> budgets() {
    const Bytes most = llvm::cantFail(ask(Bytes(INT64_MAX / 4), Bytes(INT64_MAX))).keepAllPeak;
    const ir::PlanError error = ir::takePayload(ask(Bytes(1), Bytes(INT64_MAX)).takeError());
    std::vector<Bytes> found = {error.infeasible()->smallestBudget};
    for (const int percent : {40, 50, 62, 75, 90}) {
      const Bytes budget(most.value() * percent / 100);
      if (budget > found.front()) found.push_back(budget);
    }
    return found;
  }
  /// Limits from nothing to more than the plan without one needs, in random order.
  std::vector<Bytes> drawHosts(Bytes budget) {
    const int64_t most = llvm::cantFail(ask(budget, Bytes(INT64_MAX))).timetable.hostPeak.value();
    std::mt19937_64 random(seed_);
    std::vector<Bytes> hosts = {Bytes(INT64_MAX), Bytes(most)};
    for (int i = 0; i < kHosts && most > 0; ++i) {
      hosts.emplace_back(static_cast<int64_t>(random() % static_cast<uint64_t>(most + most / 8)));
    }
    std::shuffle(hosts.begin(), hosts.end(), random);
    return hosts;
  }

  uint64_t seed_;
  ir::Graph graph_;
  ir::Target target_;
  Problem problem_;
  Planner planner_;
};

TEST_P(HostLimit, TimeNeverRisesWithTheHost) {
  for (const Bytes budget : budgets()) {
    std::map<Bytes, int64_t> times;
    std::map<Bytes, bool> fits;
    for (const Bytes host : drawHosts(budget)) {
      ir::Expected<PlanResult> result = ask(budget, host);
      fits[host] = static_cast<bool>(result);
      if (!result) {
        llvm::consumeError(result.takeError());
        continue;
      }
      EXPECT_LE(result->timetable.hostPeak, host);
      EXPECT_LE(result->timetable.devicePeak, budget);
      times[host] = result->timetable.stepTime.value();
    }
    int64_t last = INT64_MAX;
    for (const auto& [host, time] : times) {
      EXPECT_LE(time, last) << budget.value() << " with " << host.value();
      last = time;
    }
    bool didFit = false;
    for (const auto& [host, does] : fits) {
      EXPECT_TRUE(does || !didFit) << budget.value() << " with " << host.value();
      didFit = does;
    }
  }
}

TEST_P(HostLimit, TimeNeverRisesWithTheBudget) {
  const std::vector<Bytes> rising = budgets();
  for (const Bytes host : drawHosts(rising.front())) {
    int64_t last = INT64_MAX;
    for (const Bytes budget : rising) {
      ir::Expected<PlanResult> result = ask(budget, host);
      if (!result) {
        EXPECT_EQ(last, INT64_MAX) << budget.value() << " with " << host.value();
        llvm::consumeError(result.takeError());
        continue;
      }
      EXPECT_LE(result->timetable.stepTime.value(), last)
          << budget.value() << " with " << host.value();
      last = result->timetable.stepTime.value();
    }
  }
}

TEST_P(HostLimit, TheNamedSmallestWorksAndIsNamedWhateverWasAsked) {
  const Bytes unit(target_.alignBytes);
  for (const Bytes budget : budgets()) {
    std::set<Bytes> named;
    std::vector<Bytes> hosts = drawHosts(budget);
    hosts.resize(8);
    for (const Bytes host : hosts) {
      if (const std::optional<Bytes> bytes = need(budget, host)) named.insert(*bytes);
    }
    if (named.empty()) continue;
    ASSERT_EQ(named.size(), 1U) << budget.value();
    const Bytes smallest = *named.begin();
    ir::Expected<PlanResult> fits = ask(budget, smallest);
    ASSERT_TRUE(static_cast<bool>(fits)) << ir::describe(fits.takeError());
    // All of it is needed: a limit that the answer keeps to would not be infeasible.
    EXPECT_EQ(fits->timetable.hostPeak, smallest) << budget.value();
    EXPECT_EQ(need(budget, smallest - unit), smallest);
    EXPECT_EQ(need(budget, smallest - Bytes(1)), smallest);
    // The same from nothing.
    ir::Expected<PlanResult> cold = plan(limited(smallest), budget);
    ASSERT_TRUE(static_cast<bool>(cold)) << ir::describe(cold.takeError());
    EXPECT_EQ(cold->timetable.stepTime, fits->timetable.stepTime);
    EXPECT_EQ(cold->timetable.hostPeak, smallest);
  }
}

// Under any limit: the bytes on the host that an answer needs are enough to ask for.
TEST_P(HostLimit, WhatAnAnswerNeedsIsNotRefused) {
  for (const Bytes budget : budgets()) {
    for (const Bytes host : drawHosts(budget)) {
      if (host == Bytes(INT64_MAX)) continue;
      ir::Expected<PlanResult> result = ask(budget, host);
      if (!result) {
        llvm::consumeError(result.takeError());
        continue;
      }
      const Bytes needed = result->timetable.hostPeak;
      EXPECT_EQ(need(budget, needed), std::nullopt) << budget.value() << " with " << host.value();
    }
  }
}

// What the device must have under a limit works under it, and a unit less is infeasible.
TEST_P(HostLimit, TheNamedDeviceBudgetWorksUnderTheLimit) {
  const Bytes most = llvm::cantFail(ask(budgets().front(), Bytes(INT64_MAX))).timetable.hostPeak;
  for (const int64_t share : {4, 2, 1}) {
    const Bytes host(most.value() * share / 4);
    ir::Expected<PlanResult> none = ask(Bytes(1), host);
    ASSERT_FALSE(static_cast<bool>(none));
    const ir::PlanError error = ir::takePayload(none.takeError());
    ASSERT_TRUE(error.infeasible());
    // One byte of the device is too little whatever the host has.
    EXPECT_EQ(error.infeasible()->lacksDevice, error.infeasible()->space == "host");
    if (error.infeasible()->space != "device") continue;
    const Bytes budget = error.infeasible()->smallestBudget;
    ir::Expected<PlanResult> fits = ask(budget, host);
    EXPECT_TRUE(static_cast<bool>(fits)) << budget.value() << " with " << host.value();
    if (!fits) llvm::consumeError(fits.takeError());
    ir::Expected<PlanResult> less = ask(budget - Bytes(target_.alignBytes), host);
    EXPECT_FALSE(static_cast<bool>(less)) << budget.value() << " with " << host.value();
    if (!less) llvm::consumeError(less.takeError());
  }
}

// Quick ones that show what breaks when a chain, the lowest plans, the least of the host or what an
// answer must keep is left out.
INSTANTIATE_TEST_SUITE_P(Seeds, HostLimit, testing::Values(1, 3, 6, 12, 17, 21, 27, 31));

}  // namespace
}  // namespace stowage::planner
