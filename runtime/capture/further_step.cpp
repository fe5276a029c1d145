// SPDX-License-Identifier: Apache-2.0
//
// A further step: captured from the module and the optimizers of another, the main step, whose
// state it works on (another shape of a batch, an evaluation). One of them is awake at a time: its
// tensors without memory are those that the objects hold. Storages are the same state where they
// take the place of the same tensor, or are the same tensor from outside.
// Not here: where the values are (runtime/runner/shared_state.h).
#include <string>
#include <utility>

#include "runtime/capture/captured_step_impl.h"

namespace stowage::runtime {
namespace {

GradientsOfParameters gradientsOf(const ModuleTensors& tensors) {
  GradientsOfParameters gradients;
  for (const ModuleTensor& entry : tensors.all()) {
    if (entry.role == ir::Role::kParameter)
      gradients.emplace_back(entry.tensor, entry.tensor.grad());
  }
  return gradients;
}

ir::Error refuseOwnState(const std::string& name) {
  return ir::makeError(
      ir::ErrorCode::kUnsupported,
      "'" + name +
          "' is written by this step and is no state of the step that was captured first, so the "
          "two cannot work on one state");
}

}  // namespace

ir::StorageId CapturedStep::Impl::findReal(const c10::Storage& storage) const {
  for (size_t i = 0; i < assembled.keys.size(); ++i) {
    const StorageFacts* facts = storages.find(assembled.keys[i]);
    const bool isIt = facts != nullptr && facts->real &&
                      facts->real.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl();
    if (isIt && assembled.graph.storage(ir::StorageId(i)).persistent) return ir::StorageId(i);
  }
  return {};
}

/// Errors: kUnsupported for state that the main step lacks.
ir::Error CapturedStep::Impl::findShared() {
  if (!isFurther()) return ir::success();
  const Impl& main = functions.main->internals();
  const std::unordered_set<StorageKey> written = steps.back().trace.writtenFrom(0);
  std::vector<ir::StorageId> found(assembled.keys.size());
  for (size_t i = 0; i < assembled.keys.size(); ++i) {
    const ir::Storage& storage = assembled.graph.storage(ir::StorageId(i));
    if (!storage.persistent) continue;
    const StorageKey key = assembled.keys[i];
    const StorageFacts* facts = storages.find(key);
    if (const ModuleTensor* entry = moduleTensors.find(key)) {
      const auto id = main.idOf.find(entry->madeAs);
      if (id != main.idOf.end()) found[i] = id->second;
    } else if (facts != nullptr && facts->real) {
      found[i] = main.findReal(facts->real);
    }
    const bool isConstant =
        facts != nullptr && (facts->real || facts->handFilled) && !written.contains(key);
    if (!found[i].isValid() && !isConstant) return refuseOwnState(storage.name);
    const bool isItsConstant = found[i].isValid() && written.contains(key) &&
                               main.assembled.graph.storage(found[i]).role == ir::Role::kConstant;
    if (isItsConstant) return refuseOwnState(storage.name);
  }
  sharedWith = std::move(found);
  return ir::success();
}

bool CapturedStep::Impl::holds(const at::Tensor& tensor) const {
  const auto id = idOf.find(fakeId(tensor));
  if (id == idOf.end()) return false;
  const ir::Storage& storage = assembled.graph.storage(id->second);
  if (!storage.persistent) return false;
  return storage.role != ir::Role::kGradient || keepsGradient(tensor);
}

void CapturedStep::Impl::wake() {
  GradientsOfParameters ofMain = gradientsOf(moduleTensors);
  moduleTensors.swapInAgain();
  for (auto& [parameter, gradient] : restingGradients) parameter.mutable_grad() = gradient;
  restingGradients = std::move(ofMain);
  isAwake = true;
}

void CapturedStep::Impl::sleep() {
  GradientsOfParameters own = gradientsOf(moduleTensors);
  moduleTensors.swapOut();
  for (auto& [parameter, gradient] : restingGradients) parameter.mutable_grad() = gradient;
  restingGradients = std::move(own);
  isAwake = false;
}

ir::StorageId CapturedStep::mainStorageOf(ir::StorageId storage) const {
  const auto& shared = impl_->sharedWith;
  return shared.empty() ? ir::StorageId() : shared[storage.index()];
}

void CapturedStep::wake() {
  if (impl_->isFurther() && !impl_->isAwake) impl_->wake();
}

void CapturedStep::sleep() {
  if (impl_->isFurther() && impl_->isAwake) impl_->sleep();
}

}  // namespace stowage::runtime
