// SPDX-License-Identifier: Apache-2.0
#include "tools/run/timeline_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "planner/correct/typical_times.h"

namespace stowage::tools {

namespace {

using ir::CommandTimes;
using ir::StepTimes;
using planner::Stall;

enum class Process : int { kMeasured = 1, kPredicted = 2 };
// Rows below the engines'.
constexpr int kLaunchRow = ir::kStreamCount;
constexpr int kWaitRow = ir::kStreamCount + 1;

class TraceWriter {
 public:
  TraceWriter(const MeasuredSteps& measured, llvm::raw_ostream& os)
      : measured_(measured), os_(os), zero_(firstMoment()) {}

  void write() {
    os_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    nameRows();
    const StepTimes* before = nullptr;
    for (const StepTimes& step : measured_.steps) {
      writeStep(step, before);
      before = &step;
    }
    os_ << "\n]}\n";
  }

 private:
  using Json = nlohmann::ordered_json;

  Nanoseconds firstMoment() const {
    std::optional<Nanoseconds> first;
    for (const StepTimes& step : measured_.steps) {
      for (const auto& times : step.commands) {
        if (times && (!first || times->launchBegin < *first)) first = times->launchBegin;
      }
    }
    return first.value_or(Nanoseconds(0));
  }

  void nameRows() {
    const auto name = [&](Process process, const char* what, int row, const std::string& text) {
      put({{"ph", "M"},
           {"pid", static_cast<int>(process)},
           {"tid", row},
           {"name", what},
           {"args", {{"name", text}}}});
    };
    for (const Process process : {Process::kMeasured, Process::kPredicted}) {
      const bool isMeasured = process == Process::kMeasured;
      if (!isMeasured && !measured_.predicted) continue;
      name(process, "process_name", 0, isMeasured ? "measured" : "predicted");
      for (int row = 0; row < ir::kStreamCount; ++row) {
        if (isUsed(static_cast<ir::Stream>(row))) {
          name(process, "thread_name", row, ir::streamName(static_cast<ir::Stream>(row)));
        }
      }
      if (!isMeasured) continue;
      name(process, "thread_name", kLaunchRow, "launch thread");
      name(process, "thread_name", kWaitRow, "compute waits");
    }
  }

  bool isUsed(ir::Stream stream) const {
    return std::any_of(measured_.schedule.commands.begin(), measured_.schedule.commands.end(),
                       [&](const ir::Command& command) { return command.stream == stream; });
  }

  void writeStep(const StepTimes& step, const StepTimes* before) {
    std::optional<Nanoseconds> begin;
    for (size_t i = 0; i < step.commands.size(); ++i) {
      if (!step.commands[i]) continue;
      const CommandTimes& times = *step.commands[i];
      const ir::Command& command = measured_.schedule.commands[i];
      Json args = argumentsOf(i, step.step);
      if (measured_.predicted) {
        args["predicted_us"] =
            microseconds(measured_.predicted->end[i] - measured_.predicted->start[i]);
      }
      slice(Process::kMeasured, static_cast<int>(command.stream), nameOf(command),
            times.begin - zero_, times.end - times.begin, args);
      slice(Process::kMeasured, kLaunchRow, nameOf(command), times.launchBegin - zero_,
            times.launchEnd - times.launchBegin, {{"command", i}, {"step", step.step}});
      const Nanoseconds own = times.begin - startOf(i);
      if (command.stream == ir::Stream::kCompute && (!begin || own < *begin)) begin = own;
    }
    for (const Stall& stall : planner::findStalls(measured_.schedule, step, before)) {
      writeStall(stall, step.step);
    }
    if (measured_.predicted && begin) writePrediction(step.step, *begin);
  }

  // Where the command would begin in a step that is as predicted; the first one aligns both.
  Nanoseconds startOf(size_t command) const {
    return measured_.predicted ? measured_.predicted->start[command] : Nanoseconds(0);
  }

  void writeStall(const Stall& stall, int64_t step) {
    std::string name = stallCauseName(stall.cause);
    Json args = {{"command", stall.command.index()}, {"step", step}};
    if (stall.awaited.isValid()) {
      name += ": " + nameOf(measured_.schedule.command(stall.awaited));
      args["awaited"] = stall.awaited.index();
    }
    slice(Process::kMeasured, kWaitRow, name, stall.begin - zero_, stall.time, args);
  }

  void writePrediction(int64_t step, Nanoseconds begin) {
    const planner::Timeline& predicted = *measured_.predicted;
    for (size_t i = 0; i < predicted.start.size(); ++i) {
      const ir::Command& command = measured_.schedule.commands[i];
      slice(Process::kPredicted, static_cast<int>(command.stream), nameOf(command),
            begin + predicted.start[i] - zero_, predicted.end[i] - predicted.start[i],
            argumentsOf(i, step));
    }
  }

  std::string nameOf(const ir::Command& command) const {
    const ir::Graph& graph = measured_.graph;
    if (command.kind == ir::CommandKind::kRun) {
      const std::string text = graph.describeNode(command.node);
      return command.recompute > 0 ? "recompute " + text : text;
    }
    const ir::Residency& to = measured_.schedule.residency(command.to);
    return graph.storage(to.storage).name + " to " + ir::spaceName(to.space);
  }

  Json argumentsOf(size_t index, int64_t step) const {
    const ir::Command& command = measured_.schedule.commands[index];
    Json args = {{"command", index}, {"step", step}};
    if (command.kind == ir::CommandKind::kCopy) {
      const ir::Residency& from = measured_.schedule.residency(command.from);
      args["bytes"] = measured_.graph.storage(from.storage).bytes.value();
    }
    return args;
  }

  static double microseconds(Nanoseconds time) { return static_cast<double>(time.value()) / 1e3; }

  void slice(Process process, int row, const std::string& name, Nanoseconds at, Nanoseconds time,
             const Json& args) {
    put({{"ph", "X"},
         {"pid", static_cast<int>(process)},
         {"tid", row},
         {"name", name},
         {"ts", microseconds(at)},
         {"dur", microseconds(time)},
         {"args", args}});
  }

  void put(const Json& event) {
    os_ << (isFirst_ ? "\n" : ",\n") << event.dump(-1, ' ', false, Json::error_handler_t::replace);
    isFirst_ = false;
  }

  const MeasuredSteps& measured_;
  llvm::raw_ostream& os_;
  Nanoseconds zero_;
  bool isFirst_ = true;
};

}  // namespace

namespace {

/// Two steps, so that what the second waits for from the first is seen.
std::vector<ir::StepTimes> asSteps(const planner::Timeline& timeline) {
  std::vector<ir::StepTimes> steps;
  for (int64_t step = 0; step < 2; ++step) {
    const Nanoseconds begin(step * timeline.stepTime.value());
    steps.push_back({.step = step, .commands = {}});
    for (size_t i = 0; i < timeline.start.size(); ++i) {
      const Nanoseconds start = begin + timeline.start[i];
      steps.back().commands.emplace_back(
          ir::CommandTimes{start, start, start, begin + timeline.end[i]});
    }
  }
  return steps;
}

/// Of the schedule, when each command lasts as long as it did.
Nanoseconds periodWith(const MeasuredSteps& measured, planner::CountedFrom from) {
  std::vector<Nanoseconds> durations;
  for (const auto& time : planner::typicalDurations(measured.schedule, measured.steps, from)) {
    durations.push_back(time.value_or(Nanoseconds(0)));
  }
  if (durations.empty()) return {};
  return planner::computeTimeline(measured.graph, measured.schedule, durations).stepTime;
}

}  // namespace

TimelineSummary summarizeSteps(const MeasuredSteps& measured) {
  TimelineSummary summary;
  summary.measured = planner::summarize(measured.schedule, measured.steps);
  summary.predicted = measured.predicted;
  if (measured.predicted) {
    summary.hidden =
        planner::hiddenShare(measured.schedule, asSteps(*measured.predicted), measured.steps);
  }
  summary.ownTimes = periodWith(measured, planner::CountedFrom::kBegin);
  summary.readyTimes = periodWith(measured, planner::CountedFrom::kReady);
  return summary;
}

void writeTimeline(const MeasuredSteps& measured, llvm::raw_ostream& os) {
  TraceWriter(measured, os).write();
}

ir::Expected<std::string> compressGzip(const std::string& text) {
  constexpr int kGzipWindow = 15 + 16;  // the largest window, with a gzip header
  constexpr int kMemoryLevel = 8;       // zlib's default
  z_stream stream{};
  const auto fail = [] {
    return ir::makeError(ir::ErrorCode::kInternal, "zlib could not compress the timeline");
  };
  if (text.size() > std::numeric_limits<uInt>::max() / 2) return fail();
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return fail();
  }
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  (void)deflateEnd(&stream);
  if (status != Z_STREAM_END) return fail();
  return packed;
}

}  // namespace stowage::tools
