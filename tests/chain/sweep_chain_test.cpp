// SPDX-License-Identifier: Apache-2.0
//
// More budget never hurts on the example models' own steps, for budgets drawn at random: the
// predicted time never rises with the budget, and the bytes of a plan depend on its budget alone,
// not on the order of questions or on how busy the machine is.
#include <gtest/gtest.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "passes/plan_step.h"
#include "planner/files/plan_file.h"
#include "planner/files/plan_json.h"
#include "planner/targets/roofline.h"
#include "tests/support/or_fail.h"
#include "tools/training/model_step.h"

namespace stowage::tests {
namespace {

// STOWAGE_SWEEP_BUDGETS asks for more, and of all models.
const char* const kAsked = std::getenv("STOWAGE_SWEEP_BUDGETS");

int budgetCount() { return kAsked == nullptr ? 6 : std::atoi(kAsked); }

std::vector<const char*> models() {
  if (kAsked == nullptr) return {"gpt2", "vit"};
  return {"gpt2", "llama", "llama_lora", "vit", "resnet", "lstm"};
}

/// Keeps every core busy while it lives.
class Load {
 public:
  Load() {
    for (unsigned i = 0; i < 2 * std::max(1U, std::thread::hardware_concurrency()); ++i) {
      threads_.emplace_back([this] {
        while (!stopped_) spins_.fetch_add(1, std::memory_order_relaxed);
      });
    }
  }
  ~Load() {
    stopped_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stopped_ = false;
  std::atomic<int64_t> spins_ = 0;
  std::vector<std::thread> threads_;
};

struct Answer {
  int64_t time = 0;  // ns
  std::string text;  // the plan file, or the infeasible error
  bool fits = false;
};

class SweepChain : public testing::TestWithParam<const char*> {
 protected:
  SweepChain()
      : target_(orFail(planner::findTargetProfile("cpu"))),
        graph_(
            orFail(tools::captureModel({.model = GetParam(), .settings = {}}, {.target = target_}))
                ->graph),
        costs_(planner::rooflineCosts(graph_, target_)) {
    // Links so slow that copies, recomputes and waits all have their place.
    for (ir::LinkRate* rate : {&costs_.links.deviceToHost, &costs_.links.hostToDevice}) {
      rate->bandwidth = BytesPerSecond(rate->bandwidth.value() / 3);
    }
  }

  passes::StepPlanner makePlanner() const {
    return orFail(passes::StepPlanner::make(graph_, target_, costs_, {}));
  }

  /// Rising; from less than what works to more than everything needs, any byte.
  std::vector<int64_t> drawBudgets() const {
    const int64_t all =
        orFail(makePlanner().plan(Bytes(int64_t{1} << 50))).result.keepAllPeak.value();
    std::mt19937_64 random(1);
    std::vector<int64_t> budgets(static_cast<size_t>(budgetCount()));
    for (int64_t& budget : budgets) {
      budget = all / 6 + static_cast<int64_t>(random() % static_cast<uint64_t>(all));
    }
    std::sort(budgets.begin(), budgets.end());
    return budgets;
  }

  Answer ask(passes::StepPlanner& planner, int64_t budget) const {
    ir::Expected<passes::PlannedStep> planned = planner.plan(Bytes(budget));
    if (!planned) return {.text = ir::describe(planned.takeError())};
    Answer answer{.time = planned->result.timetable.stepTime.value(), .fits = true};
    llvm::raw_string_ostream os(answer.text);
    orFail(planner::writePlan(
        planner::makePlanFile(planned->graph, target_, std::move(planned->schedule), Bytes(budget)),
        os));
    return answer;
  }

  ir::Target target_;
  ir::Graph graph_;
  ir::CostTable costs_;
};

TEST_P(SweepChain, TimeNeverRisesAndABudgetHasOnePlan) {
  const std::vector<int64_t> budgets = drawBudgets();
  std::vector<Answer> answers;
  passes::StepPlanner planner = makePlanner();
  for (const int64_t budget : budgets) {
    answers.push_back(ask(planner, budget));
    if (answers.size() < 2) continue;
    const Answer& less = answers[answers.size() - 2];
    EXPECT_GE(answers.back().fits, less.fits) << "infeasible at " << budget;
    if (less.fits) {
      EXPECT_LE(answers.back().time, less.time) << "at " << budget;
    }
  }
  EXPECT_TRUE(answers.back().fits);

  std::vector<size_t> shuffled(budgets.size());
  for (size_t i = 0; i < shuffled.size(); ++i) shuffled[i] = i;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937_64(2));
  const Load load;
  passes::StepPlanner other = makePlanner();
  for (const size_t i : shuffled) {
    EXPECT_EQ(ask(other, budgets[i]).text, answers[i].text) << "at " << budgets[i];
  }
}

INSTANTIATE_TEST_SUITE_P(All, SweepChain, testing::ValuesIn(models()),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace stowage::tests
