// SPDX-License-Identifier: Apache-2.0
#include "tools/run/times_files.h"

#include <llvm/Support/raw_ostream.h>

#include <utility>

#include "ir/base/affix.h"
#include "planner/evaluate/timeline.h"
#include "tools/files/whole_file.h"

namespace stowage::tools {

namespace {

constexpr int64_t kFewestSteps = 3;

ir::Error checkFile(const char* flag, const std::string& path, const CommonFlags& flags,
                    int64_t steps, llvm::ArrayRef<std::string> inputs) {
  if (path.empty()) return ir::success();
  if (steps < kFewestSteps) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         std::string(flag) +
                             " takes times of two steps or more, never of the first: expected "
                             "--steps " +
                             std::to_string(kFewestSteps) + " or more");
  }
  if (ir::Error error = checkIsNoInput(path, inputs)) return error;
  return checkWritable(path, flags.replace);
}

ir::Error writeText(const std::string& path, const CommonFlags& flags, const std::string& text) {
  return writeWholeFile(path, flags.replace, [&](llvm::raw_ostream& os) { os << text; });
}

ir::Error keepTimeline(const std::string& path, const CommonFlags& flags,
                       const MeasuredSteps& measured) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeTimeline(measured, os);
  os.flush();
  if (!ir::endsWith(path, ".gz")) return writeText(path, flags, text);
  ir::Expected<std::string> packed = compressGzip(text);
  if (!packed) return packed.takeError();
  return writeText(path, flags, *packed);
}

}  // namespace

ir::Error checkTimesFiles(const TimesFiles& files, const CommonFlags& flags, int64_t steps,
                          llvm::ArrayRef<std::string> inputs) {
  if (ir::Error error = checkFile("--costs-out", files.costs, flags, steps, inputs)) return error;
  if (ir::Error error = checkFile("--timeline", files.timeline, flags, steps, inputs)) return error;
  if (files.timeline.empty() || files.timeline != files.costs) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       "--timeline and --costs-out name the same file");
}

ir::Error checkTimesOf(const LoadedPlan& plan, const TimesFiles& files, const std::string& costs) {
  for (const std::string& path : {files.costs, files.timeline}) {
    if (path.empty()) continue;
    if (ir::Error error = checkIsNoInput(path, filesOfPlan(plan))) return error;
  }
  if (!files.costs.empty() && costs.empty() && plan.file.graph.rowBlocks > 1) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "--costs-out: the plan runs ops in " +
                             std::to_string(plan.file.graph.rowBlocks) +
                             " row blocks, so its steps have no times of these ops as a whole, "
                             "which plans need: expected --costs too, with times that 'stowage "
                             "profile' measured of this step");
  }
  const ir::GraphMode mode = plan.file.schedule.graphMode;
  if (!files.any() || mode == ir::GraphMode::kNone) return ir::success();
  return ir::makeError(ir::ErrorCode::kInvalidArgument,
                       std::string(files.costs.empty() ? "--timeline" : "--costs-out") +
                           ": the plan launches CUDA graphs (mode '" + ir::graphModeName(mode) +
                           "'), in which the times of single commands are not taken; a plan with "
                           "--launch none tells them");
}

MeasuredSteps measuredSteps(const LoadedPlan& plan, const CostsHere& costs,
                            const std::vector<ir::StepTimes>& times) {
  MeasuredSteps measured = {.graph = plan.graph,
                            .schedule = plan.file.schedule,
                            .steps = times,
                            .predicted = std::nullopt};
  if (!costs.hasLinks) return measured;
  measured.predicted = planner::computeTimeline(plan.graph, plan.file.schedule, costs.nodes,
                                                plan.file.target.alignBytes);
  return measured;
}

ir::Expected<TimesFiles> keepTimes(const TimesFiles& files, const CommonFlags& flags,
                                   const TimesToKeep& times) {
  if (!files.any()) return files;
  if (times.measured.steps.size() < 2) {
    remark("stopped before two steps were timed: " + files.costs +
               (files.costs.empty() || files.timeline.empty() ? "" : " and ") + files.timeline +
               " not written",
           flags);
    return TimesFiles{};
  }
  if (!files.costs.empty()) {
    ir::Expected<std::string> text =
        makeCorrectedCosts(times.plan, times.costs, times.measured.steps, times.pace);
    if (!text) return text.takeError();
    if (ir::Error error = writeText(files.costs, flags, *text)) return error;
  }
  if (!files.timeline.empty()) {
    if (ir::Error error = keepTimeline(files.timeline, flags, times.measured)) return error;
  }
  return files;
}

}  // namespace stowage::tools
