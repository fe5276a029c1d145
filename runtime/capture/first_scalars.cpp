// SPDX-License-Identifier: Apache-2.0
//
// Step scalars of the steps that ran during capture: as recorded, while the closures' hidden state
// is ahead of them. Options that were changed by hand are followed where that is exact: `update`
// leaves the options alone, and running optimizer->step() alone gives what it gave inside `update`.
// Other numbers that the loop sets cannot be seen there: the step after them is refused when one of
// them is new in it.
// Not here: later steps (captured_step.cpp).
#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/capture/captured_step_impl.h"

namespace stowage::runtime {
namespace {

ir::Error cannotFollow(size_t step, size_t capturedSteps, const std::string& why) {
  return ir::makeError(ir::ErrorCode::kPlanMismatch,
                       "the optimizer's options were changed by hand before step " +
                           std::to_string(step + 1) + ", and " + why +
                           "; set `hostState` to HostState::kDeclared and name the schedulers in "
                           "`schedulers`, or change options after the first " +
                           std::to_string(capturedSteps) + " steps");
}

bool sameOps(const StepTrace& step, size_t begin, const StepTrace& part) {
  for (size_t i = 0; i < part.nodes.size(); ++i) {
    if (step.nodes[begin + i].op != part.nodes[i].op) return false;
  }
  return true;
}

}  // namespace

/// Where the update of the captured step does what `part` does.
std::optional<size_t> CapturedStep::Impl::findInUpdate(const StepTrace& part) const {
  const StepTrace& captured = steps.back().trace;
  const size_t count = part.nodes.size();
  for (size_t begin = captured.updateBegin; begin + count <= captured.nodes.size(); ++begin) {
    if (!sameOps(captured, begin, part)) continue;
    StepPart candidate = wholeStep(captured, "the captured step");
    candidate.begin = begin;
    candidate.end = begin + count;
    ir::Error error = matchSteps(candidate, wholeStep(part, "the optimizers' step()"), storages);
    if (!error) return begin;
    llvm::consumeError(std::move(error));
  }
  return std::nullopt;
}

/// The scalars of a step that ran during capture. What the first step lacks (a momentum that it
/// created instead of scaling) takes part in it with the numbers of the second.
std::vector<ScalarValue> CapturedStep::Impl::scalarsSeenIn(size_t step) const {
  std::vector<ScalarValue> values;
  for (ScalarSite site : stepScalars) {
    const int32_t first = firstValues->alignment().firstOf[site.node];
    const bool inFirst = step == 0 && first >= 0;
    const StepTrace& trace = steps[step == 0 && !inFirst ? 1 : step].trace;
    if (inFirst) site.node = static_cast<uint32_t>(first);
    values.push_back(toScalarValue(numberAt(trace, site)));
  }
  return values;
}

ir::Expected<std::vector<ScalarValue>> CapturedStep::Impl::scalarsOfFirstSteps(size_t step) {
  if (!hostNumbers[step].areCurrent()) return scalarsChangedByHand(step);
  hostNumbers[step + 1].putBack();
  return scalarsSeenIn(step);
}

ir::Expected<std::vector<ScalarValue>> CapturedStep::Impl::scalarsChangedByHand(size_t step) {
  if (!hostNumbers[step].isComplete()) {
    return cannotFollow(step, steps.size(),
                        "capture does not know what this optimizer keeps on the host");
  }
  if (!hostNumbers[step].equals(hostNumbers[step + 1])) {
    return cannotFollow(step, steps.size(), "the update changes them in that step as well");
  }
  const OptimizerNumbers byHand = OptimizerNumbers::of(functions.optimizer);
  hostNumbers[step].putBack();
  ir::Expected<StepTrace> asCaptured = traceOptimizersAlone();
  byHand.putBack();
  if (!asCaptured) return asCaptured.takeError();
  // Leaves options and counts as an eager step does.
  ir::Expected<StepTrace> now = traceOptimizersAlone();
  if (!now) return now.takeError();
  ir::Expected<std::vector<ScalarValue>> values = replaceScalars(step, *asCaptured, *now);
  if (!values) byHand.putBack();
  return values;
}

/// The scalars of a captured step, with those of `now` where the optimizer alone gave `asCaptured`.
ir::Expected<std::vector<ScalarValue>> CapturedStep::Impl::replaceScalars(
    size_t step, const StepTrace& asCaptured, const StepTrace& now) const {
  const std::optional<size_t> begin = findInUpdate(now);
  if (!begin || findInUpdate(asCaptured) != begin) {
    return cannotFollow(
        step, steps.size(),
        "the update does other than call step() of the optimizers, one right after the other");
  }
  std::vector<ScalarValue> values = scalarsSeenIn(step);
  for (size_t i = 0; i < values.size(); ++i) {
    ScalarSite site = stepScalars[i];
    if (site.node < *begin || site.node >= *begin + now.nodes.size()) continue;
    site.node -= static_cast<uint32_t>(*begin);
    if (values[i] != toScalarValue(numberAt(asCaptured, site))) {
      return cannotFollow(step, steps.size(),
                          "the update gives the optimizer other numbers than it has alone");
    }
    values[i] = toScalarValue(numberAt(now, site));
  }
  return values;
}

/// Had the number the same value in all steps of the capture that are alike?
bool CapturedStep::Impl::wasConstant(const ScalarSite& site) const {
  const HostNumber last = numberAt(steps.back().trace, site);
  return std::all_of(steps.begin() + 1, steps.end(),
                     [&](const ObservedStep& step) { return numberAt(step.trace, site) == last; });
}

/// Numbers of the first step after those of the capture. One that is new came from `update` itself,
/// or from the loop, and then perhaps steps ago. Options are no question: where they were set by
/// hand during the first steps, that was seen, and where the last of those or this one changes
/// them, numbers follow.
ir::Error CapturedStep::Impl::checkFirstTraced(const OptimizerNumbers& before,
                                               const std::vector<ScalarValue>& now) const {
  const OptimizerNumbers& captured = hostNumbers[steps.size() - 1];
  const bool optionsChanged =
      !captured.equals(hostNumbers.back()) || !captured.equals(before) || !captured.areCurrent();
  if (optionsChanged) return ir::success();
  const StepTrace& last = steps.back().trace;
  for (size_t i = 0; i < stepScalars.size(); ++i) {
    const ScalarSite& site = stepScalars[i];
    if (now[i] == toScalarValue(numberAt(last, site)) || !wasConstant(site)) continue;
    const TracedNode& node = last.nodes[site.node];
    const std::string count = std::to_string(steps.size());
    return ir::makeError(
        ir::ErrorCode::kPlanMismatch,
        "a host number is new in step " + std::to_string(steps.size() + 1) + ": " + node.op->name +
            ", argument " + node.op->schema().arguments()[site.argument].name() + ". The first " +
            count +
            " steps ran with the numbers of the capture; if the training loop set this one before "
            "or during them, they were wrong. Capture again with hostState = "
            "HostState::kDeclared, which takes numbers from the first step on: name schedulers in "
            "`schedulers`, and put back what `update` itself counts in `rewind`");
  }
  return ir::success();
}

}  // namespace stowage::runtime
