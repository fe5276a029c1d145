// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/host_state/module_tensors.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "runtime/capture/dispatch/lazy_views.h"
#include "runtime/capture/host_state/optimizer_state.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {
namespace {

/// Tensors that share a storage share one after the move.
class StorageMover {
 public:
  at::Tensor move(const at::Tensor& tensor, c10::Device to) {
    c10::Storage& moved = moved_[tensor.storage().unsafeGetStorageImpl()];
    if (!moved) {
      TensorShape bytes{.sizes = {}, .strides = {1}, .offset = 0, .dtype = c10::kByte};
      bytes.sizes.push_back(static_cast<int64_t>(tensor.storage().nbytes()));
      moved = makeTensor(tensor.storage(), bytes).to(to).storage();
    }
    return makeTensor(moved, shapeOf(tensor));
  }

 private:
  std::unordered_map<const c10::StorageImpl*, c10::Storage> moved_;
};

std::string called(llvm::StringRef function, const std::string& name) {
  return (function + "(" + name + ")").str();
}

ir::Error checkTensor(const ModuleTensor& entry, const IsKnown& known) {
  const at::Tensor& tensor = entry.tensor;
  const bool hasOrigin = !isFake(tensor) || fakeOrigin(*tensor.storage().unsafeGetStorageImpl()) ||
                         (known && known(tensor));
  if (!hasOrigin) {
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         entry.name +
                             " has no memory since an earlier capture: drop its step, or end its "
                             "training first (leave() in Python, storeTo); what it could not give "
                             "back belongs to an optimizer that "
                             "it did not name (name all optimizers)");
  }
  const bool isDense = tensor.layout() == c10::kStrided && !tensor.is_quantized() &&
                       !tensor.is_nested() && toDType(tensor.scalar_type());
  if (isDense && isLazyView(tensor)) {
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         entry.name +
                             " is a view by conj() (or imag() of one), which stands for other "
                             "numbers than its bytes, expected resolve_conj() (or resolve_neg()) "
                             "of it");
  }
  if (isDense && (tensor.device().is_cpu() || tensor.is_cuda() || isFake(tensor))) {
    return ir::success();
  }
  if (isDense) {
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         entry.name + " lies on device " + tensor.device().str() +
                             ", expected the module and its optimizer's state on the CPU or a GPU");
  }
  return ir::makeError(ir::ErrorCode::kUnsupported,
                       entry.name + " is a sparse, nested or quantized tensor or has type " +
                           c10::toString(tensor.scalar_type()) + ", expected a dense tensor");
}

ir::Error checkOptimizers(const OptimizerList& optimizers) {
  for (const auto& optimizer : optimizers) {
    if (ir::Error error = optimizer->checkUsable()) return error;
  }
  return ir::success();
}

/// The plan moves storages: what one holds must come and go together.
ir::Error checkSharing(const std::vector<ModuleTensor>& tensors) {
  std::unordered_map<const c10::StorageImpl*, const ModuleTensor*> owners;
  for (const ModuleTensor& entry : tensors) {
    const auto [owner, isNew] =
        owners.emplace(entry.tensor.storage().unsafeGetStorageImpl(), &entry);
    const bool isParameter = entry.role == ir::Role::kParameter;
    if (isNew || isParameter == (owner->second->role == ir::Role::kParameter)) continue;
    return ir::makeError(
        ir::ErrorCode::kUnsupported,
        entry.name + " and " + owner->second->name +
            " share one storage, and one of them is no parameter; give each its own");
  }
  return ir::success();
}

}  // namespace

ir::Expected<ModuleTensors> ModuleTensors::find(const std::shared_ptr<torch::nn::Module>& module,
                                                const OptimizerList& optimizers,
                                                const IsKnown& known) {
  ModuleTensors found;
  if (ir::Error error = checkOptimizers(optimizers)) return error;
  if (module != nullptr) {
    for (const auto& item : module->named_parameters()) {
      found.add({.name = item.key(),
                 .role = ir::Role::kParameter,
                 .tensor = item.value(),
                 .path = modulePathOf(item.key())});
    }
    for (const auto& item : module->named_buffers()) {
      found.add({.name = item.key(),
                 .role = ir::Role::kBuffer,
                 .tensor = item.value(),
                 .path = modulePathOf(item.key())});
    }
  }
  size_t count = 0;
  for (const auto& optimizer : optimizers) {
    for (const at::Tensor& parameter : optimizer->parameters()) {
      found.add({.name = "parameter." + std::to_string(count++),
                 .role = ir::Role::kParameter,
                 .tensor = parameter});
    }
  }
  found.addGradientsAndState(optimizers, known);
  for (const ModuleTensor& entry : found.tensors_) {
    if (ir::Error error = checkTensor(entry, known)) return error;
  }
  if (ir::Error error = checkSharing(found.tensors_)) return error;
  return found;
}

void ModuleTensors::addGradientsAndState(const OptimizerList& optimizers, const IsKnown& known) {
  const size_t parameters = tensors_.size();
  for (size_t i = 0; i < parameters; ++i) {
    const ModuleTensor owner = tensors_[i];
    if (owner.role != ir::Role::kParameter) continue;
    const at::Tensor& gradient = owner.tensor.grad();
    if (!isFake(gradient) || (known && known(gradient))) {
      add({.name = called("grad", owner.name),
           .role = ir::Role::kGradient,
           .tensor = gradient,
           .path = owner.path});
    }
    forEachStateTensor(optimizers, owner.tensor,
                       [&](llvm::StringRef function, ir::Role role, const at::Tensor& tensor) {
                         add({.name = called(function, owner.name),
                              .role = role,
                              .tensor = tensor,
                              .path = owner.path});
                       });
  }
}

void ModuleTensors::add(ModuleTensor entry) {
  if (entry.tensor.defined() && !knows(entry.tensor)) tensors_.push_back(std::move(entry));
}

bool ModuleTensors::knows(const at::Tensor& tensor) const {
  return std::any_of(tensors_.begin(), tensors_.end(),
                     [&](const ModuleTensor& entry) { return entry.tensor.is_same(tensor); });
}

void ModuleTensors::swapIn(c10::Device device) {
  std::unordered_map<const c10::StorageImpl*, c10::Storage> made;
  StorageMover toHost;
  for (ModuleTensor& entry : tensors_) {
    entry.original = entry.tensor.detach();
    if (entry.tensor.is_cuda() && !isFake(entry.tensor)) {
      entry.home = entry.tensor.device();
      entry.original = toHost.move(entry.tensor, c10::kCPU);
    }
    const c10::StorageImpl* impl = entry.tensor.storage().unsafeGetStorageImpl();
    c10::Storage& storage = made[impl];
    if (!storage) storage = makeFakeStorage(static_cast<int64_t>(impl->nbytes()), device, false);
    entry.id = fakeId(*storage.unsafeGetStorageImpl());
    entry.madeAs = fakeId(*impl);
    entry.maker = fakeOrigin(*impl);
    entry.inside = storage;
    entry.tensor.set_data(makeTensor(storage, shapeOf(entry.tensor)));
  }
  swappedIn_ = true;
}

void ModuleTensors::swapOut() {
  if (!std::exchange(swappedIn_, false)) return;
  StorageMover toGpu;
  for (ModuleTensor& entry : tensors_) {
    if (!entry.original.defined()) continue;
    entry.tensor.set_data(entry.home ? toGpu.move(entry.original, *entry.home) : entry.original);
  }
}

void ModuleTensors::swapInAgain() {
  for (ModuleTensor& entry : tensors_) {
    entry.original = entry.tensor.detach();
    entry.tensor.set_data(makeTensor(entry.inside, shapeOf(entry.tensor)));
  }
  swappedIn_ = true;
}

void ModuleTensors::releaseOriginals() {
  for (ModuleTensor& entry : tensors_) entry.original.reset();
}

const ModuleTensor* ModuleTensors::find(FakeId id) const {
  for (const ModuleTensor& entry : tensors_) {
    if (entry.id == id) return &entry;
  }
  return nullptr;
}

std::string modulePathOf(const std::string& parameterName) {
  const size_t dot = parameterName.rfind('.');
  return dot == std::string::npos ? std::string() : parameterName.substr(0, dot);
}

}  // namespace stowage::runtime
