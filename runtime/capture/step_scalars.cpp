// SPDX-License-Identifier: Apache-2.0
//
// Host numbers of a captured step: which of them are step scalars, which come from values that the
// step reads with item() and so cannot be, and what a step may read.
// The steps as they ran, with other answers of item() in each -> step scalars, or a refusal.
// Not here: their values while a plan runs (retrace.cpp, first_scalars.cpp).
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "runtime/capture/captured_step_impl.h"
#include "runtime/capture/graph/node_uses.h"

namespace stowage::runtime {
namespace {

/// What the value that item() asked for was made by.
std::string makerOf(const StepTrace& step, const ReadBack& read) {
  for (size_t i = read.before; i-- > 0;) {
    const auto& results = step.nodes[i].results;
    if (std::find(results.begin(), results.end(), read.tensor) == results.end()) continue;
    return "the result of " + step.nodes[i].op->name;
  }
  return "a tensor that no op of the step made";
}

/// item() gave NaN, 1e30 and 0: has a number that differs between the steps come from there?
bool looksLikePoison(double number) {
  constexpr double kBeyondAnySetting = 1e25;
  const double size = std::abs(number);
  return std::isnan(number) || size >= kBeyondAnySetting ||
         (size > 0 && size <= 1 / kBeyondAnySetting);
}

}  // namespace

ir::Error explainByReads(ir::Error error, const StepTrace& step, size_t node) {
  if (step.readBacks.empty() || step.readBacks.front().before > node) return error;
  const ir::PlanError found = ir::takePayload(std::move(error));
  const std::string& place = step.readBacks.front().place;
  // Nobody's own item(): autograd has formulas that branch.
  const bool isAutograds = llvm::StringRef(place).endswith("backward");
  return ir::makeError(
      found.code(),
      found.text() + "; the step reads a value with item() (" + place +
          "), on which nothing that it does may depend" +
          (isAutograds ? "; libtorch's own backward of max(), min(), median() and prod() does so "
                         "(amax() and amin() do not)"
                       : ""));
}

ir::Error explainThrown(ir::Error thrown, Tracer& tracer, const StepRecorder& recorder) {
  if (ir::Error refusal = tracer.takeRefusal()) {
    llvm::consumeError(std::move(thrown));
    thrown = std::move(refusal);
  }
  const StepTrace& step = recorder.trace();
  const ir::PlanError found = ir::takePayload(std::move(thrown));
  if (found.code() != ir::ErrorCode::kTorch || step.readBacks.empty()) return ir::makeError(found);
  const ReadBack& read = step.readBacks.back();
  return ir::makeError(
      ir::ErrorCode::kUnsupported,
      found.text() + "; capture gave a made-up value for item() in this step, last of " +
          makerOf(step, read) + " (" + read.place +
          "): code that checks a value or decides by it cannot be captured; compute with the "
          "tensor instead, or check before the step");
}

// A number that changes with the poison, and is the same again under the same poison, is made from
// what was read, whatever was made of it. One that the step's own numbers change as well shows at
// least where nonsense reaches it unchanged.
bool CapturedStep::Impl::comesFromRead(const ScalarSite& site) const {
  const StepTrace& last = steps.back().trace;
  const auto readBefore = [&](const ReadBack& read) { return read.before <= site.node; };
  if (std::none_of(last.readBacks.begin(), last.readBacks.end(), readBefore)) return false;
  if (numberAt(last, site) == numberAt(steps[kRepeatedStep].trace, site)) return true;
  return std::any_of(steps.begin() + 1, steps.end(), [&](const ObservedStep& step) {
    return looksLikePoison(numberAt(step.trace, site).value);
  });
}

ir::Error CapturedStep::Impl::findStepScalars() {
  const StepTrace& last = steps.back().trace;
  const StepAlignment alignment = alignFirstStep(steps.front().trace, last, storages);
  for (const ScalarSite& site : scalarSites(last)) {
    const bool inUpdate = site.node >= last.updateBegin;
    const HostNumber number = numberAt(last, site);
    bool differs = std::any_of(steps.begin() + 1, steps.end(), [&](const ObservedStep& step) {
      return !(numberAt(step.trace, site) == number);
    });
    const int32_t first = alignment.firstOf[site.node];
    if (!inUpdate && first >= 0) {
      const ScalarSite inFirst{static_cast<uint32_t>(first), site.argument, site.element};
      differs = differs || !(numberAt(steps.front().trace, inFirst) == number);
    }
    const bool mayDiffer = inUpdate || functions.lossNumbers == LossNumbers::kEachStep;
    if (!mayDiffer && !differs) {
      fixedNumbers.push_back(site);
      continue;
    }
    if (differs && comesFromRead(site)) {
      return ir::makeError(
          ir::ErrorCode::kUnsupported,
          last.nodes[site.node].op->name + ": its argument " +
              last.nodes[site.node].op->schema().arguments()[site.argument].name() +
              " is computed from a value that the step reads with item() (" +
              last.readBacks.front().place + "); compute with the tensor instead");
    }
    scalarsOutsideUpdate = scalarsOutsideUpdate || !inUpdate;
    stepScalars.push_back(site);
  }
  return checkReadsOfLoss();
}

/// Is what was read the update's own, unknown until that is over?
bool CapturedStep::Impl::isMadeByUpdate(const ReadBack& read) const {
  const StepTrace& last = steps.back().trace;
  const StorageKey storage = last.tensors[read.tensor].storage;
  for (size_t i = last.updateBegin; i < read.before; ++i) {
    if (writes(last, last.nodes[i], storage)) return true;
  }
  return false;
}

/// What `loss` reads with item() must be known in each step before its update.
ir::Error CapturedStep::Impl::checkReadsOfLoss() const {
  const StepTrace& last = steps.back().trace;
  for (const ReadBack& read : last.readBacks) {
    if (read.before > last.updateBegin && !functions.whole) break;
    const bool isWritten =
        last.writtenFrom(read.before).contains(last.tensors[read.tensor].storage);
    std::string why;
    if (functions.whole && isMadeByUpdate(read)) {
      why =
          "that its update makes (all after the last backward() is the update), which is not known "
          "while the step is prepared: return the tensor from the step and read it afterwards, or "
          "compute it before the last backward()";
    } else if (scalarsOutsideUpdate) {
      why =
          "and computes with numbers that change from step to step, so that nothing could tell "
          "whether it decides by the value: return the value and read it after the step, or give "
          "the numbers to the step as inputs (tensors)";
    } else if (isWritten) {
      why =
          "of a tensor that the step writes afterwards: read it after the step, or read a clone "
          "of it";
    } else if (functions.hostState == HostState::kHidden) {
      why =
          "with hidden host state, expected hostState = HostState::kDeclared: capture gives it "
          "made-up values, and what `loss` keeps of them must be put back (in `rewind`; nothing "
          "to put back is fine); or return the value from `loss` and read it after the step";
    }
    if (why.empty()) continue;
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         (functions.whole ? "the step" : "`loss`") +
                             std::string(" reads a value with item() (") + read.place + ") " + why);
  }
  return ir::success();
}

}  // namespace stowage::runtime
