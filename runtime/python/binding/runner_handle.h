// SPDX-License-Identifier: Apache-2.0
//
// A training under way, as `torch.classes.stowage.Runner`: steps, state, what it takes.
#ifndef STOWAGE_RUNTIME_PYTHON_BINDING_RUNNER_HANDLE_H_
#define STOWAGE_RUNTIME_PYTHON_BINDING_RUNNER_HANDLE_H_

#include <torch/custom_class.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/python/binding/plan_handle.h"
#include "runtime/runner/runner.h"

namespace stowage::python {

class RunnerHandle : public torch::CustomClassHolder {
 public:
  /// `weights`: safetensors files with values of parameters and buffers; what they lack is the
  /// step's. Python is called with "advance" where a checkpoint is loaded: it puts its numbers
  /// back. `main`: the runner on whose state this one works, with a further step of that one's.
  /// `mostHostBytes`: addresses of host memory that such may come to use.
  RunnerHandle(const c10::intrusive_ptr<PlanHandle>& plan, std::vector<std::string> weights,
               std::optional<c10::intrusive_ptr<RunnerHandle>> main, int64_t mostHostBytes);

  /// What the step reports, on the CPU.
  /// `compareFirst`: compared with its code before anything of it is enqueued.
  std::vector<at::Tensor> runStep(const std::vector<at::Tensor>& inputs, bool compareFirst);
  /// Can no step follow?
  bool isStopped() const { return runner_ == nullptr || runner_->isStopped(); }
  /// Is the state gone?
  bool isLost() const { return runner_ == nullptr || runner_->isLost(); }
  void finish();
  /// The tensors of module and optimizers become this one's.
  void takeTurn();
  /// Of a further one: the other goes on without it.
  void end();
  /// From one to the other the module holds copies of the training's values. What happens to them
  /// meanwhile does not count.
  void beginRead();
  void endRead();
  /// Copies on the CPU of what tensors of the module and the optimizers hold now: shaped and laid
  /// out like them; those that share memory share it. Others come back as they are.
  std::vector<at::Tensor> values(const std::vector<at::Tensor>& tensors);
  /// Gives them other values, shaped, typed and laid out alike, for the steps to come.
  void putValues(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& values);
  /// The device arena's memory goes back, and comes back. JSON: bytes copied, and times.
  std::string releaseArena();
  std::string restoreArena();
  bool isReleased() const { return runner_ != nullptr && runner_->isReleased(); }
  void storeBack();
  /// `note` is kept in the checkpoint for whoever loads it.
  void save(const std::string& folder, const std::string& note);
  /// Steps that the checkpoint had.
  int64_t load(const std::string& folder);
  /// JSON: steps, peak, arena, memory beside the arena, time of a re-trace.
  std::string facts();

 private:
  ir::StorageId storageOf(const at::Tensor& tensor) const;

  c10::intrusive_ptr<PlanHandle> plan_;
  std::optional<c10::intrusive_ptr<RunnerHandle>> main_;  // outlives the runner
  std::optional<Step> step_;                              // stays captured while it runs
  std::optional<Ranks> ranks_;                            // of a step for several
  std::unique_ptr<runtime::Runner> runner_;
};

/// What `save` was given with the checkpoint.
std::string checkpointNote(const std::string& folder);

}  // namespace stowage::python

#endif  // STOWAGE_RUNTIME_PYTHON_BINDING_RUNNER_HANDLE_H_
