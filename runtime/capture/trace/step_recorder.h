// SPDX-License-Identifier: Apache-2.0
//
// Writes down the calls of one step: tracer calls -> a StepTrace. Knows the phase of each call
// (optimizer: inside `update`; backward: inside autograd's engine; else forward), autograd's number
// that ties a backward call to its forward op, and what host code wrote into tensors by hand.
// Not here: comparing steps (step_diff.h), names (scopes.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_TRACE_STEP_RECORDER_H_
#define STOWAGE_RUNTIME_CAPTURE_TRACE_STEP_RECORDER_H_

#include <string>
#include <unordered_map>

#include "runtime/capture/dispatch/tracer.h"
#include "runtime/capture/trace/trace.h"

namespace stowage::runtime {

class StepRecorder : public OpSink {
 public:
  explicit StepRecorder(StorageTable& storages) : storages_(storages) {}

  /// Module path of each parameter, for messages only.
  void setModulePaths(std::unordered_map<StorageKey, std::string> paths) {
    modulePaths_ = std::move(paths);
  }

  void beginStep();
  void beginUpdate();
  /// The update began after the last op of backward; nothing if it has begun.
  void beginUpdateAfterBackward();
  StepTrace endStep();
  /// The room of a trace that is done with is used for the next step.
  void reuse(StepTrace trace);
  /// What was recorded of the step so far.
  const StepTrace& trace() const { return trace_; }
  /// The position of `tensor` in the step being recorded.
  ir::ValueId idOf(const at::Tensor& tensor);

  void recordOp(const TracedCall& call, llvm::ArrayRef<at::Tensor> results) override;
  void recordReadBack(const at::Tensor& tensor) override;
  bool isWritten(const at::Tensor& tensor) const override;
  std::string place() const override;

 private:
  void noteHostBytes(const TracedCall& call);
  void noteWrites(const TracedCall& call, TracedNode& node);
  bool coversStorage(const at::Tensor& tensor) const;

  StorageTable& storages_;
  StepTrace trace_;
  bool inUpdate_ = false;
  std::unordered_map<StorageKey, std::string> modulePaths_;
  std::unordered_map<uint64_t, std::string> pathOfSequence_;
  std::string lastPath_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_TRACE_STEP_RECORDER_H_
