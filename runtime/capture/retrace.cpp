// SPDX-License-Identifier: Apache-2.0
//
// The closures once more, on tensors without memory, while a plan runs: the step scalars of the
// next step, and whether the closures still do what was captured. A checked step runs `loss` and
// `update`, with the values that the running step reads where they are known, and everything is
// compared: ops, tensors, numbers, what `loss` returns, tensors from outside. Without a check only
// `update` runs.
// Errors: kPlanMismatch, naming the op, what it has now, and what to do.
// Not here: the steps that ran during capture (first_scalars.cpp).
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "ir/text/literal.h"
#include "runtime/capture/captured_step_impl.h"
#include "runtime/capture/host_state/host_rewind.h"

namespace stowage::runtime {
namespace {

ir::Error mismatch(const std::string& why) {
  return ir::makeError(ir::ErrorCode::kPlanMismatch, why);
}

ir::Error captureAgain(ir::Error why, const std::string& place = "") {
  return mismatch(ir::describe(std::move(why)) + place +
                  "; if that is so from now on, capture again; a step that does now one thing and "
                  "now another has no plan");
}

std::string numberText(const HostNumber& number) {
  if (number.isInteger) return std::to_string(number.integer);
  std::string text;
  llvm::raw_string_ostream stream(text);
  ir::writeDouble(stream, number.value);
  return text;
}

/// Gradients as they were before a part of the step ran alone.
class HeldGradients {
 public:
  explicit HeldGradients(const ModuleTensors& tensors) {
    for (const ModuleTensor& entry : tensors.all()) {
      if (entry.role != ir::Role::kParameter) continue;
      gradients_.emplace_back(entry.tensor, entry.tensor.grad());
    }
  }
  ~HeldGradients() {
    for (auto& [parameter, gradient] : gradients_) parameter.mutable_grad() = gradient;
  }
  HeldGradients(const HeldGradients&) = delete;
  HeldGradients& operator=(const HeldGradients&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> gradients_;
};

}  // namespace

/// The value of the read that was just recorded, if the captured step has it. A step may lack some.
std::optional<c10::Scalar> CapturedStep::Impl::valueOfRead(const StepCheck& check) {
  if (!check.valueOfRead) return std::nullopt;
  const std::vector<ReadBack>& captured = steps.back().trace.readBacks;
  const ReadBack& now = recorder.trace().readBacks.back();
  const auto found = std::find_if(captured.begin(), captured.end(),
                                  [&](const ReadBack& read) { return read.isSameAs(now); });
  if (found != captured.end()) return check.valueOfRead(found - captured.begin());
  if (!unknownRead) unknownRead = now.place;
  return std::nullopt;
}

/// Traces `run` as a step, or a part of one, of a training that is under way.
ir::Expected<StepTrace> CapturedStep::Impl::traceWhileRunning(
    const std::string& what, const std::function<ir::Error()>& run) {
  const SeedWatch seed;
  recorder.beginStep();
  storages.beginTransient();
  ir::Error error = trace(what, run);
  tracer.setValueOfRead({});
  if (error) return error;
  if (!seed.isUntouched()) {
    return mismatch(
        "the step seeds libtorch's random number generator, which it did not when it was captured");
  }
  return recorder.endStep();
}

/// step() of each optimizer, without what else `update` does.
ir::Expected<StepTrace> CapturedStep::Impl::traceOptimizersAlone() {
  const HeldGradients held(moduleTensors);
  return traceUpdate([&] {
    for (const auto& optimizer : functions.optimizer) optimizer->step();
  });
}

ir::Expected<StepTrace> CapturedStep::Impl::traceUpdate(const std::function<void()>& update) {
  tracer.setPoison(Tracer::Poison::kNan);
  for (const auto& [parameter, gradient] : gradients) {
    at::Tensor(parameter).mutable_grad() = gradient;
  }
  return traceWhileRunning("while tracing the update again", [&] {
    recorder.beginUpdate();
    update();
    return ir::success();
  });
}

ir::Expected<ObservedStep> CapturedStep::Impl::traceWhole(const StepCheck& check) {
  tracer.setPoison(Tracer::Poison::kNan);
  tracer.setValueOfRead([&] { return valueOfRead(check); });
  ObservedStep observed;
  unknownRead.reset();
  // Later traces of `update` alone start from the gradients of the captured step.
  const auto ofCapture = gradients;
  ir::Expected<StepTrace> trace =
      traceWhileRunning("while tracing the step again", [&] { return runStep(observed); });
  gradients = ofCapture;
  if (!trace) return trace.takeError();
  observed.trace = std::move(*trace);
  return observed;
}

/// Where in the captured step: ", near h.3.attn, backward".
std::string CapturedStep::Impl::placeOf(size_t node) const {
  const StepTrace& captured = steps.back().trace;
  if (node >= captured.nodes.size()) return "";
  const std::string& scope = scopes[node];
  return (scope.empty() ? ", " : ", near " + scope + ", ") +
         ir::phaseName(captured.nodes[node].phase);
}

/// Numbers that the plan keeps.
ir::Error CapturedStep::Impl::compareFixedNumbers(const StepTrace& again) const {
  const StepTrace& captured = steps.back().trace;
  for (const ScalarSite& site : fixedNumbers) {
    const HostNumber was = numberAt(captured, site), is = numberAt(again, site);
    if (was == is) continue;
    const TracedNode& node = captured.nodes[site.node];
    const char* advice =
        functions.whole
            ? "give it to the step as an argument (a tensor), or allow it by "
              "@stowage.step(..., changing_numbers=True), which takes such numbers anew in each "
              "step"
            : "give it to the loss as an input of the step (a tensor), or capture with lossNumbers "
              "= "
              "LossNumbers::kEachStep (and hostState = HostState::kDeclared), which takes such "
              "numbers anew in each step";
    return mismatch((functions.whole ? "the step" : "`loss`") +
                    std::string(" computes with another number than the plan: ") + node.op->name +
                    placeOf(site.node) + ": argument " +
                    node.op->schema().arguments()[site.argument].name() + " is " + numberText(is) +
                    " now and was " + numberText(was) + " when the step was captured; " + advice);
  }
  return ir::success();
}

ir::Error CapturedStep::Impl::compareWhole(const ObservedStep& again) {
  const ObservedStep& captured = steps.back();
  StepPart part = wholeStep(captured.trace, "the captured step");
  part.reports = captured.reports;
  StepPart now = wholeStep(again.trace, "this step");
  now.reports = again.reports;
  PartMatch match;
  if (ir::Error error = matchSteps(part, now, storages, {}, &match)) {
    return captureAgain(explainByReads(std::move(error), again.trace, match.differsFrom),
                        placeOf(match.differsFrom));
  }
  if (unknownRead) {
    return mismatch((functions.whole ? "the step" : "`loss`") +
                    std::string(" reads a value with item() (") + *unknownRead +
                    ") that it did not read when it was captured: read it in each step, and decide "
                    "afterwards whether to use it");
  }
  if (ir::Error error = compareFixedNumbers(again.trace)) return error;
  heldFromLoss = std::move(match.pairs);
  return outside.checkUnchanged();
}

std::vector<ScalarValue> CapturedStep::Impl::scalarsIn(const StepTrace& again, size_t begin) const {
  std::vector<ScalarValue> values;
  for (ScalarSite site : stepScalars) {
    site.node -= static_cast<uint32_t>(begin);
    values.push_back(toScalarValue(numberAt(again, site)));
  }
  return values;
}

ir::Expected<std::vector<ScalarValue>> CapturedStep::Impl::scalarsByTracing(
    const StepCheck& check) {
  const StepTrace& captured = steps.back().trace;
  if (check.whole || scalarsOutsideUpdate || functions.whole) {
    ir::Expected<ObservedStep> again = traceWhole(check);
    if (!again) return again.takeError();
    if (ir::Error error = compareWhole(*again)) return error;
    std::vector<ScalarValue> values = scalarsIn(again->trace, 0);
    endTrace(std::move(again->trace));
    return values;
  }
  ir::Expected<StepTrace> again = traceUpdate(functions.update);
  if (!again) return again.takeError();
  StepPart part = wholeStep(captured, "the captured step");
  part.begin = captured.updateBegin;
  if (ir::Error error = matchSteps(part, wholeStep(*again, "this step"), storages, heldFromLoss)) {
    return captureAgain(std::move(error));
  }
  std::vector<ScalarValue> values = scalarsIn(*again, captured.updateBegin);
  endTrace(std::move(*again));
  return values;
}

/// Steps take no memory from outside: a trace of many calls is large.
void CapturedStep::Impl::endTrace(StepTrace trace) {
  recorder.reuse(std::move(trace));
  storages.endTransient([&](StorageKey key) { return heldFromLoss.contains(key); });
}

bool CapturedStep::Impl::ranInCapture(size_t step) const {
  return functions.hostState == HostState::kHidden && step < steps.size();
}

bool CapturedStep::canBeChecked(int64_t step) const {
  return !impl_->ranInCapture(static_cast<size_t>(step));
}

ir::Expected<std::vector<ScalarValue>> CapturedStep::nextScalars(const StepCheck& check) {
  if (impl_->stored) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "the tensors were stored back, expected a step that is still captured");
  }
  const size_t step = impl_->nextStep;
  if (impl_->ranInCapture(step)) {
    if (ir::Error error = impl_->outside.checkUnchanged()) return error;
    ir::Expected<std::vector<ScalarValue>> values = impl_->scalarsOfFirstSteps(step);
    if (values) ++impl_->nextStep;
    return values;
  }
  ++impl_->nextStep;
  const OptimizerNumbers before = OptimizerNumbers::of(impl_->functions.optimizer);
  const std::vector<unsigned> counts = schedulerCounts(impl_->functions.schedulers);
  ir::Expected<std::vector<ScalarValue>> values = impl_->scalarsByTracing(check);
  if (values && check.whole && impl_->ranInCapture(step - 1)) {
    if (ir::Error error = impl_->checkFirstTraced(before, *values)) values = std::move(error);
  }
  if (values) return values;
  // The step is not taken: its counts are not, either.
  before.putBack();
  rewindSchedulers(impl_->functions.schedulers, counts);
  return values;
}

std::vector<ir::ValueId> CapturedStep::valuesRead() const {
  const StepTrace& step = impl_->steps.back().trace;
  std::vector<ir::ValueId> values;
  for (size_t i = 0; i < step.readBacks.size(); ++i) {
    const ReadBack& read = step.readBacks[i];
    // One function reads nothing that its update makes (checkReadsOfLoss).
    if (read.before > step.updateBegin && !impl_->functions.whole) break;
    values.push_back(impl_->readBacks[i]);
  }
  return values;
}

}  // namespace stowage::runtime
