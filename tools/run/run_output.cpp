// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_output.h"
#include "planner/report/plan_summary.h"

#include <fmt/format.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/raw_ostream.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/cli/json_answer.h"
#include "tools/run/run_pauses.h"

namespace stowage::tools {

namespace {

std::string excessText(double value, double base) {
  if (base <= 0) return "";
  return fmt::format(", predicted {:.4f} s: {:+.1f} %", base, (value / base - 1) * 100);
}

std::string peakText(Bytes found, Bytes predicted) {
  if (found == predicted) return " as predicted";
  return fmt::format(" ({} bytes, predicted {})", found.value(), predicted.value());
}

std::string writtenText(Bytes below) {
  if (below.value() == 0) return "written to its end";
  return fmt::format("written up to {} bytes below it", below.value());
}

std::string stepText(const runtime::TrainingRecord& training, const std::string& excess) {
  if (training.secondsPerStep <= 0) return "step not measured: the first one does not count";
  return fmt::format("step {:.4f} s (measured{})", training.secondsPerStep, excess);
}

/// Null where nothing was measured.
nlohmann::ordered_json stepNanoseconds(const runtime::TrainingRecord& training) {
  if (training.secondsPerStep <= 0) return nullptr;
  return training.meanStep().value();
}

std::string millisecondsText(Nanoseconds time) {
  return fmt::format("{:.2f} ms", static_cast<double>(time.value()) / 1e6);
}

std::string againstText(Nanoseconds value, Nanoseconds base) {
  const std::string excess = planner::formatExcess(value, base, /*sign=*/true);
  return excess.empty() ? "" : " (" + excess + ")";
}

/// Without deterministic mode: how much of the unplanned run repeats itself, and why not more.
std::string repeatedText(const runtime::Comparison& comparison) {
  if (!comparison.repeated) return "";
  return fmt::format(" wherever it repeats itself ({} of {} losses and tensors in {} trainings)",
                     comparison.repeated->equal, comparison.repeated->compared,
                     comparison.repeated->trainings);
}

bool isComparable(const runtime::Comparison& comparison) {
  return !comparison.repeated || comparison.repeated->equal > 0;
}

Nanoseconds busyOf(const std::array<Nanoseconds, ir::kStreamCount>& busy, ir::Stream stream) {
  return busy[static_cast<size_t>(stream)];
}

void printTimeline(const TimelineSummary& summary, llvm::raw_ostream& os) {
  const planner::StepSummary& measured = summary.measured;
  os << fmt::format(
      "timeline   {} steps of {}: compute {}, offloads {}, prefetches {}, "
      "launch overhead {}\n",
      measured.steps, millisecondsText(measured.period),
      millisecondsText(busyOf(measured.busy, ir::Stream::kCompute)),
      millisecondsText(busyOf(measured.busy, ir::Stream::kDeviceToHost)),
      millisecondsText(busyOf(measured.busy, ir::Stream::kHostToDevice)),
      millisecondsText(measured.launchOverhead));
  os << "           compute waited";
  for (size_t i = 0; i < measured.stalls.size(); ++i) {
    os << (i == 0 ? " " : ", ") << millisecondsText(measured.stalls[i]) << " for "
       << planner::stallCauseName(static_cast<planner::StallCause>(i));
  }
  os << fmt::format(
      "\n           the plan with the measured times of its commands {}{}; with their launch "
      "latency "
      "{}{}\n",
      millisecondsText(summary.ownTimes), againstText(summary.ownTimes, measured.period),
      millisecondsText(summary.readyTimes), againstText(summary.readyTimes, measured.period));
  if (!summary.predicted) return;
  os << fmt::format("           predicted {}{}: compute {}{}\n",
                    millisecondsText(summary.predicted->stepTime),
                    againstText(summary.predicted->stepTime, measured.period),
                    millisecondsText(busyOf(summary.predicted->busy, ir::Stream::kCompute)),
                    againstText(busyOf(summary.predicted->busy, ir::Stream::kCompute),
                                busyOf(measured.busy, ir::Stream::kCompute)));
  if (!summary.hidden) return;
  os << fmt::format("           copies planned as hidden were hidden for {:.1f} % of their time\n",
                    100 * *summary.hidden);
}

nlohmann::ordered_json busyJson(const std::array<Nanoseconds, ir::kStreamCount>& busy) {
  nlohmann::ordered_json json;
  for (size_t i = 0; i < busy.size(); ++i) {
    if (busy[i].value() > 0) json[ir::streamName(static_cast<ir::Stream>(i))] = busy[i].value();
  }
  return json;
}

nlohmann::ordered_json timelineJson(const TimelineSummary& summary) {
  const planner::StepSummary& measured = summary.measured;
  nlohmann::ordered_json stalls;
  for (size_t i = 0; i < measured.stalls.size(); ++i) {
    stalls[planner::stallCauseName(static_cast<planner::StallCause>(i))] =
        measured.stalls[i].value();
  }
  nlohmann::ordered_json json = {{"steps", measured.steps},
                                 {"step_ns", measured.period.value()},
                                 {"busy_ns", busyJson(measured.busy)},
                                 {"stall_ns", stalls},
                                 {"launch_ns", measured.launchOverhead.value()},
                                 {"own_times_step_ns", summary.ownTimes.value()},
                                 {"ready_times_step_ns", summary.readyTimes.value()}};
  if (summary.predicted) {
    json["predicted"] = {{"step_ns", summary.predicted->stepTime.value()},
                         {"busy_ns", busyJson(summary.predicted->busy)}};
  }
  if (summary.hidden) json["hidden_copies_permille"] = std::lround(1000 * *summary.hidden);
  return json;
}

}  // namespace

void printExpected(const planner::PlanFile& plan, llvm::raw_ostream& os) {
  const ir::Prediction& predicted = plan.schedule.predicted;
  os << "predicted  peak " << formatBytes(predicted.peakBytes) << ", step "
     << formatDuration(predicted.stepTime) << '\n';
}

void printRunAnswer(const RunAnswer& answer, llvm::raw_ostream& os) {
  const runtime::RunRecord& run = answer.run;
  const runtime::TrainingRecord& training = run.training;
  const double predicted =
      static_cast<double>(answer.plan.schedule.predicted.stepTime.value()) / 1e9;
  if (!answer.resume.empty()) {
    os << fmt::format("resumed    after {} steps{}\n", run.training.firstStep,
                      run.samePlan ? "" : ", saved under another plan");
  }
  if (!answer.weights.empty()) os << "began      with " << answer.weights << '\n';
  os << "data       " << answer.data << '\n';
  os << fmt::format("ran        {} steps{}: arena {}, {} allocations outside\n",
                    training.losses.size(), run.stopped ? " (asked to stop)" : "",
                    formatBytes(run.arena), run.allocationsOutside);
  if (answer.plan.graph.ranks > 1) {
    os << fmt::format(
        "           on each of {} ranks, of which this is rank 0, by {}; losses are the mean\n",
        answer.plan.graph.ranks, run.transport);
  }
  if (run.peak) {
    os << "           peak " << formatBytes(*run.peak)
       << peakText(*run.peak, answer.plan.schedule.predicted.peakBytes) << ", "
       << writtenText(*run.peak - run.highWaterMark) << '\n';
  }
  if (run.memoryOutside) {
    os << "           beside the arena " << formatBytes(*run.memoryOutside)
       << " of the GPU: context, kernels, libraries (the plan counts "
       << formatBytes(answer.plan.target.outside) << ")\n";
  }
  if (run.recordings > 0) {
    os << fmt::format("           recorded as a CUDA graph {} in {} steps\n",
                      run.recordings == 1 ? "once" : fmt::format("{} times", run.recordings),
                      training.losses.size());
  }
  os << "           " << stepText(training, excessText(training.secondsPerStep, predicted)) << '\n';
  if (!training.losses.empty()) {
    os << fmt::format("           loss {:.4f} -> {:.4f}", training.losses.front(),
                      training.losses.back());
  }
  if (const runtime::Comparison* comparison = answer.comparison) {
    os << ", "
       << (!comparison->difference.empty()
               ? "DIFFERENT from the unplanned run: " + comparison->difference
           : isComparable(*comparison)
               ? "identical bits to the unplanned run" + repeatedText(*comparison)
               : "no bits to compare: the unplanned run repeats none of its losses and tensors");
    os << "\nunplanned  " << stepText(comparison->eager, "");
    if (comparison->eager.peak) os << ", peak " << formatBytes(*comparison->eager.peak);
    if (comparison->repeated && !comparison->repeated->ops.empty()) {
      os << "\n           its ops that need not repeat their bits: "
         << llvm::join(comparison->repeated->ops, ", ");
    }
  }
  os << '\n';
  if (answer.timeline) printTimeline(*answer.timeline, os);
  if (!run.releases.empty()) os << releasesText(run.releases);
  if (!answer.save.empty()) os << "wrote      " << answer.save << '\n';
  for (const std::string& file : {answer.times.costs, answer.times.timeline}) {
    if (!file.empty()) os << "wrote      " << file << '\n';
  }
}

void printRunJson(const RunAnswer& answer) {
  const runtime::RunRecord& run = answer.run;
  nlohmann::ordered_json json = {{"steps", run.training.losses.size()},
                                 {"first_step", run.training.firstStep},
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
  if (answer.plan.graph.ranks > 1) {
    json["ranks"] = answer.plan.graph.ranks;
    json["transport"] = run.transport;
  }
  if (run.peak) json["peak_bytes"] = run.peak->value();
  if (run.recordings > 0) json["recordings"] = run.recordings;
  if (run.memoryOutside) json["outside_bytes"] = run.memoryOutside->value();
  if (!answer.weights.empty()) json["weights"] = answer.weights;
  if (!answer.resume.empty()) json["same_plan"] = run.samePlan;
  if (!answer.save.empty()) json["saved"] = answer.save;
  if (answer.timeline) json["timeline"] = timelineJson(*answer.timeline);
  if (!run.releases.empty()) json["releases"] = releasesJson(run.releases);
  if (const runtime::Comparison* comparison = answer.comparison) {
    json["unplanned"] = {{"identical", comparison->difference.empty() && isComparable(*comparison)},
                         {"difference", comparison->difference},
                         {"step_ns", stepNanoseconds(comparison->eager)}};
    if (comparison->repeated) {
      json["unplanned"]["repeats"] = {{"trainings", comparison->repeated->trainings},
                                      {"compared", comparison->repeated->compared},
                                      {"equal", comparison->repeated->equal},
                                      {"unrepeatable_ops", comparison->repeated->ops}};
    }
    if (comparison->eager.peak) {
      json["unplanned"]["peak_bytes"] = comparison->eager.peak->value();
    }
  }
  printJson(json);
}

}  // namespace stowage::tools
