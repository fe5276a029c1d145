// SPDX-License-Identifier: Apache-2.0
//
// What a step must keep to, seen from its closures and tensors rather than from its calls: a loss
// that is one, gradients that are this step's, an owner for all that is trained.
// Not here: whether steps are the same (step_matcher.h), what a call may be (tracer.h).
#include <algorithm>
#include <string>
#include <unordered_set>

#include "runtime/capture/captured_step_impl.h"

namespace stowage::runtime {
namespace {

ir::Error wrongLoss(const StepFunctions& functions, const std::string& found,
                    const std::string& expected) {
  return ir::makeError(
      ir::ErrorCode::kInvalidArgument,
      (functions.whole ? "the step " : "the closure `loss` ") + found + ", expected " + expected);
}

}  // namespace

/// A gradient from before the capture that this step has not written.
bool CapturedStep::Impl::isLeftOver(const at::Tensor& gradient) const {
  if (moduleTensors.find(fakeId(gradient)) == nullptr) return false;
  const auto& nodes = recorder.trace().nodes;
  return std::none_of(nodes.begin(), nodes.end(),
                      [](const TracedNode& node) { return node.phase == ir::Phase::kBackward; });
}

ir::Error CapturedStep::Impl::checkLoss(const std::vector<at::Tensor>& returned) const {
  for (const at::Tensor& report : returned) {
    if (!report.defined()) return wrongLoss(functions, "returned an undefined tensor", "the loss");
    if (report.numel() == 1 || !functions.trains) continue;
    const llvm::ArrayRef<int64_t> sizes(report.sizes().data(), report.sizes().size());
    return wrongLoss(functions, "returned a tensor of sizes " + ir::listText(sizes), "a scalar");
  }
  const bool anyNew = std::any_of(gradients.begin(), gradients.end(),
                                  [&](const auto& pair) { return !isLeftOver(pair.second); });
  if (anyNew && !functions.trains) {
    return wrongLoss(functions, "left a gradient", "forward alone, without backward()");
  }
  if (anyNew || !functions.trains) return ir::success();
  return wrongLoss(functions, "left no parameter with a gradient",
                   "it to call backward() on a loss that depends on the module's parameters");
}

/// A parameter that somebody else updates has an optimizer that was not named: its state could not
/// be given back, its step counts not be put back.
ir::Error CapturedStep::Impl::checkOwners() const {
  if (functions.optimizer.empty() || functions.hostState == HostState::kDeclared) {
    return ir::success();
  }
  const std::unordered_set<StorageKey> written = steps.back().trace.writtenFrom(0);
  for (const ModuleTensor& entry : moduleTensors.all()) {
    const bool isTrained = entry.role == ir::Role::kParameter && entry.tensor.requires_grad() &&
                           written.contains(entry.id);
    if (!isTrained || isIn(functions.optimizer, entry.tensor)) continue;
    return ir::makeError(
        ir::ErrorCode::kUnsupported,
        "parameter '" + entry.name +
            "' is updated, but belongs to no optimizer that the step names: name all of them, "
            "optimizer = {&first, &second}; or, if it is updated by hand, say so with hostState = "
            "HostState::kDeclared");
  }
  return ir::success();
}

/// What trains a tensor that neither the module nor a named optimizer holds cannot be traced again:
/// its gradient is nobody's.
ir::Error CapturedStep::Impl::checkTrainedOutside() const {
  for (const auto& [key, facts] : storages.all()) {
    if (!facts.trained || !storages.isReal(key)) continue;
    return ir::makeError(
        ir::ErrorCode::kUnsupported,
        (functions.whole ? "the step" : "`update`") + std::string(" trains a tensor of ") +
            std::to_string(facts.bytes) +
            (functions.whole
                 ? " bytes that is neither in the model nor in an optimizer of the step: name all "
                   "optimizers, @stowage.step(model, [first, second], ...), or give a model that "
                   "registers all that is trained"
                 : " bytes that `module` does not register and no optimizer of the step steps: "
                   "name all optimizers, optimizer = {&first, &second}, or give as `module` one "
                   "that registers all that is trained (register_module)"));
  }
  return ir::success();
}

/// A batch is the caller's: a plan works on a copy of it.
ir::Error CapturedStep::Impl::checkInputsAreRead() const {
  const std::unordered_set<StorageKey> written = steps.back().trace.writtenFrom(0);
  for (const auto& [name, tensor] : inputTensors) {
    if (!written.contains(fakeId(tensor))) continue;
    return ir::makeError(
        ir::ErrorCode::kUnsupported,
        "the step writes its input '" + name +
            "' in place, which a plan would not do to the caller's tensor: clone() "
            "it first");
  }
  return ir::success();
}

/// What `loss` returned is read when the step is over.
ir::Error CapturedStep::Impl::checkReports() const {
  const ObservedStep& last = steps.back();
  const std::unordered_set<StorageKey> written = last.trace.writtenFrom(last.trace.updateBegin);
  for (const ir::ValueId report : last.reports) {
    const StorageKey key = last.trace.tensors[report].storage;
    if (!written.contains(key)) continue;
    const ModuleTensor* entry = moduleTensors.find(key);
    return wrongLoss(functions,
                     "returned a view of " + (entry == nullptr ? "a tensor" : entry->name) +
                         ", which the update writes",
                     "a tensor of its own (clone)");
  }
  return ir::success();
}

}  // namespace stowage::runtime
