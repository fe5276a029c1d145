// SPDX-License-Identifier: Apache-2.0
//
// The tensors a step keeps from step to step, by name: parameters and buffers of the module,
// gradients and optimizer state that exist already. Swaps them for tensors without memory on the
// target's device and back, keeping each tensor object (set_data), so that module, optimizer and
// autograd go on holding what they held.
// Invariants: tensors that share a storage share one afterwards; the first name wins.
// Not here: state that the first step creates (known_storages.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_HOST_STATE_MODULE_TENSORS_H_
#define STOWAGE_RUNTIME_CAPTURE_HOST_STATE_MODULE_TENSORS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/capture/host_state/optimizer_list.h"

namespace torch::nn {
class Module;
}

namespace stowage::runtime {

struct ModuleTensor {
  std::string name;
  ir::Role role = ir::Role::kParameter;
  at::Tensor tensor;    // the object that module or optimizer holds
  std::string path;     // of the module it belongs to
  at::Tensor original;  // what it was before the swap: live, or made under WithoutMemory
  std::optional<c10::Device> home;  // where that was, if not on the CPU
  FakeId id = 0;                    // of the storage it has during capture
  FakeId madeAs = 0;    // the original's, when that was made under WithoutMemory; else 0
  FakeOrigin maker;     // its construction
  c10::Storage inside;  // the storage that it has during capture
};

/// Is a tensor without memory one of a step that is captured?
using IsKnown = std::function<bool(const at::Tensor&)>;

class ModuleTensors {
 public:
  /// Lists what `module` (may be null) and `optimizers` hold. Errors: kUnsupported for
  /// tensors that cannot be captured (sparse, quantized), or have no memory and are not `known`.
  /// Gradients without memory that are not known are left out.
  static ir::Expected<ModuleTensors> find(const std::shared_ptr<torch::nn::Module>& module,
                                          const OptimizerList& optimizers,
                                          const IsKnown& known = {});
  /// Values on a GPU go to the host, storage by storage.
  void swapIn(c10::Device device);
  /// Puts the originals back.
  void swapOut();
  /// After both: the tensors have the storages again that they had inside.
  void swapInAgain();
  void releaseOriginals();

  const std::vector<ModuleTensor>& all() const { return tensors_; }
  const ModuleTensor* find(FakeId id) const;

 private:
  void add(ModuleTensor entry);
  void addGradientsAndState(const OptimizerList& optimizers, const IsKnown& known);
  bool knows(const at::Tensor& tensor) const;

  std::vector<ModuleTensor> tensors_;
  bool swappedIn_ = false;
};

/// "h.3.attn.c_attn.weight" -> "h.3.attn.c_attn".
std::string modulePathOf(const std::string& parameterName);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_HOST_STATE_MODULE_TENSORS_H_
