// SPDX-License-Identifier: Apache-2.0
#include "tools/run_output.h"

#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>

#include <nlohmann/json.hpp>

namespace stowage::tools {

namespace {

std::string excessText(double value, double base) {
  return base <= 0 ? "" : fmt::format(", {:+.1f} %", (value / base - 1) * 100);
}

std::string stepText(const TrainingRecord& training, const std::string& excess) {
  if (training.secondsPerStep <= 0) return "step not measured: the first one does not count";
  return fmt::format("step {:.3f} s (measured{})", training.secondsPerStep, excess);
}

/// Null where nothing was measured.
nlohmann::ordered_json stepNanoseconds(const TrainingRecord& training) {
  if (training.secondsPerStep <= 0) return nullptr;
  return static_cast<int64_t>(training.secondsPerStep * 1e9);
}

}  // namespace

void printRunAnswer(const RunAnswer& answer, llvm::raw_ostream& os) {
  const RunRecord& run = answer.run;
  const TrainingRecord& training = run.training;
  const double predicted =
      static_cast<double>(answer.plan.schedule.predicted.stepTime.value()) / 1e9;
  if (!answer.resume.empty()) {
    os << fmt::format("resumed    after {} steps{}\n", run.firstStep,
                      run.samePlan ? "" : ", saved under another plan");
  }
  if (!answer.weights.empty()) os << "began      with " << answer.weights << '\n';
  os << "data       " << answer.data << '\n';
  os << fmt::format("ran        {} steps{}: arena {}, high-water mark {}, {} allocations outside\n",
                    training.losses.size(), run.stopped ? " (asked to stop)" : "",
                    formatBytes(run.arena), formatBytes(run.highWaterMark), run.allocationsOutside);
  os << "           " << stepText(training, excessText(training.secondsPerStep, predicted)) << '\n';
  if (!training.losses.empty()) {
    os << fmt::format("           loss {:.4f} -> {:.4f}", training.losses.front(),
                      training.losses.back());
  }
  if (const Comparison* comparison = answer.comparison) {
    os << (comparison->difference.empty()
               ? ", identical bits to the unplanned run"
               : ", DIFFERENT from the unplanned run: " + comparison->difference);
    os << "\nunplanned  " << stepText(comparison->eager, "");
  }
  os << '\n';
  if (!answer.save.empty()) os << "wrote      " << answer.save << '\n';
}

void printRunJson(const RunAnswer& answer, llvm::raw_ostream& os) {
  const RunRecord& run = answer.run;
  nlohmann::ordered_json json = {{"steps", run.training.losses.size()},
                                 {"first_step", run.firstStep},
                                 {"stopped", run.stopped},
                                 {"data", answer.data},
                                 {"losses", run.training.losses},
                                 {"arena_bytes", run.arena.value()},
                                 {"high_water_bytes", run.highWaterMark.value()},
                                 {"allocations_outside", run.allocationsOutside},
                                 {"step_ns", stepNanoseconds(run.training)},
                                 {"predicted",
                                  {{"peak_bytes", answer.plan.schedule.predicted.peakBytes.value()},
                                   {"step_ns", answer.plan.schedule.predicted.stepTime.value()}}}};
  if (!answer.weights.empty()) json["weights"] = answer.weights;
  if (!answer.resume.empty()) json["same_plan"] = run.samePlan;
  if (!answer.save.empty()) json["saved"] = answer.save;
  if (const Comparison* comparison = answer.comparison) {
    json["unplanned"] = {{"identical", comparison->difference.empty()},
                         {"difference", comparison->difference},
                         {"step_ns", stepNanoseconds(comparison->eager)}};
  }
  os << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace stowage::tools
