// SPDX-License-Identifier: Apache-2.0
//
// A small training as several processes would run it: each with its own captured step and arenas,
// all by one plan.
#ifndef STOWAGE_TESTS_SUPPORT_TRAINING_PROCESS_H_
#define STOWAGE_TESTS_SUPPORT_TRAINING_PROCESS_H_

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/targets/roofline.h"
#include "runtime/calibrate/calibrate.h"
#include "runtime/runner/runner.h"
#include "tests/support/keep_all_schedule.h"
#include "tests/support/or_fail.h"
#include "tools/training/model_step.h"

namespace stowage::tests {

using Settings = std::vector<std::string>;

/// A model of one block with dropout, and a learning rate that falls each step.
inline Settings settingsOf(int hidden, const Settings& more = {}) {
  Settings settings = {"layers=1",     "hidden=" + std::to_string(hidden),
                       "heads=2",      "sequence=16",
                       "context=16",   "vocabulary=64",
                       "schedule=step"};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

/// A captured step as a new process would make it.
inline std::unique_ptr<tools::ModelStep> captureAgain(const ir::Target& target,
                                                      const Settings& settings) {
  constexpr uint64_t kSeed = 5;
  return orFail(tools::captureModel({.model = "gpt2", .settings = settings},
                                    {.target = target, .seed = kSeed, .withoutMemory = false}));
}

struct Planned {
  Settings settings;
  ir::Target target;
  ir::Graph graph;
  ir::NodeCosts costs;
  ir::Schedule schedule;
};

/// The captured graph with measured costs, and `makeSchedule(graph, target, table, costs)` of it.
template <typename Make>
Planned planWith(const Settings& settings, Make makeSchedule) {
  Planned planned;
  planned.settings = settings;
  planned.target = orFail(planner::findTargetProfile("cpu"));
  planned.target.intraOpThreads = 2;
  planned.graph = captureAgain(planned.target, settings)->graph;
  const ir::CostTable table = orFail(runtime::calibrate(
      planned.graph, {.intraOpThreads = 2, .alignBytes = 512, .runs = 1, .known = {}}));
  planned.costs = orFail(ir::resolveCosts(planned.graph, table));
  planned.schedule = makeSchedule(planned, table);
  return planned;
}

/// Everything has a place of its own for ever.
inline Planned keepAll(const Settings& settings) {
  return planWith(settings, [](const Planned& planned, const ir::CostTable&) {
    return makeKeepAllSchedule(planned.graph, planned.target, &planned.costs);
  });
}

/// What one process has: its own module, optimizer, scheduler and arenas.
struct Process {
  std::unique_ptr<tools::ModelStep> step;
  std::unique_ptr<runtime::Runner> runner;
  std::vector<float> losses;

  explicit Process(const Planned& planned, runtime::RunnerOptions options = {})
      : step(captureAgain(planned.target, planned.settings)),
        runner(orFail(runtime::Runner::create(*step->captured,
                                              {.graph = planned.graph,
                                               .schedule = planned.schedule,
                                               .target = planned.target,
                                               .costs = &planned.costs},
                                              std::move(options)))) {
    at::manual_seed(77);
  }

  void train(int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const auto batch = tools::makeInputs(step->training, static_cast<uint64_t>(1000 + i));
      losses.push_back(orFail(runner->step(batch)).front().item<float>());
    }
  }

  std::map<std::string, std::vector<uint8_t>> state() {
    std::map<std::string, std::vector<uint8_t>> all;
    const auto keep = [&](const ir::Storage& storage, llvm::ArrayRef<uint8_t> bytes) {
      all[storage.name] = bytes.vec();
      return ir::success();
    };
    EXPECT_EQ(ir::describe(runner->visitState(keep)), "");
    return all;
  }
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_TRAINING_PROCESS_H_
