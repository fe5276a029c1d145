// SPDX-License-Identifier: Apache-2.0
//
// Step scalars of the steps that ran during capture: as recorded, while the closures' hidden state
// is ahead of them. Options that were changed by hand are followed where that is exact: `update`
// leaves the options alone, and running optimizer->step() alone gives what it gave inside `update`.
// Not here: later steps (captured_step.cpp).
#include <torch/optim/optimizer.h>

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

bool isSame(const ScalarValue& value, const ScalarValue& other) {
  return value.isInteger == other.isInteger && value.integer == other.integer &&
         value.value == other.value;
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
  const OptimizerList& optimizers = functions.optimizer;
  if (!hostNumbers[step].equals(optimizers)) return scalarsChangedByHand(step);
  hostNumbers[step + 1].putBack(optimizers);
  return scalarsSeenIn(step);
}

ir::Expected<std::vector<ScalarValue>> CapturedStep::Impl::scalarsChangedByHand(size_t step) {
  const OptimizerList& optimizers = functions.optimizer;
  if (!hostNumbers[step].isComplete()) {
    return cannotFollow(step, steps.size(),
                        "capture does not know what this optimizer keeps on the host");
  }
  if (!hostNumbers[step].equals(hostNumbers[step + 1])) {
    return cannotFollow(step, steps.size(), "the update changes them in that step as well");
  }
  const OptimizerNumbers byHand = OptimizerNumbers::of(optimizers);
  hostNumbers[step].putBack(optimizers);
  ir::Expected<StepTrace> asCaptured = traceOptimizersAlone();
  byHand.putBack(optimizers);
  if (!asCaptured) return asCaptured.takeError();
  // Leaves options and counts as an eager step does.
  ir::Expected<StepTrace> now = traceOptimizersAlone();
  if (!now) return now.takeError();
  ir::Expected<std::vector<ScalarValue>> values = replaceScalars(step, *asCaptured, *now);
  if (!values) byHand.putBack(optimizers);
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
    if (!isSame(values[i], toScalarValue(numberAt(asCaptured, site)))) {
      return cannotFollow(step, steps.size(),
                          "the update gives the optimizer other numbers than it has alone");
    }
    values[i] = toScalarValue(numberAt(now, site));
  }
  return values;
}

}  // namespace stowage::runtime
