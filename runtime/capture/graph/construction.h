// SPDX-License-Identifier: Apache-2.0
//
// The record of a construction without memory: its calls, random draws included, and the state that
// the default generator had. Replayed, it gives the bytes that constructing with memory would have.
// Replay order: draws and in-place writes stay in order, since they share one generator; a call
// that only makes something new from finished tensors (a cast) runs as soon as these are, so that
// what it reads can go. A tensor overwritten before anyone reads it takes part only for its draws.
// Not here: the scope that records (without_memory.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_GRAPH_CONSTRUCTION_H_
#define STOWAGE_RUNTIME_CAPTURE_GRAPH_CONSTRUCTION_H_

#include <functional>
#include <memory>
#include <vector>

#include "ir/base/error.h"
#include "runtime/capture/dispatch/tracer.h"
#include "runtime/capture/trace/step_recorder.h"

namespace stowage::runtime {

class Construction : public OpSink {
 public:
  /// Tensors made while its tracer traces keep the construction alive.
  static std::shared_ptr<Construction> create();
  Tracer& tracer() { return *tracer_; }

  using Deliver = std::function<ir::Error(FakeId storage, const at::Tensor& bytes)>;
  /// Runs the record on the CPU, delivers each storage that `wanted` asks for when it is final,
  /// and leaves the default generator as construction with memory would have.
  ir::Error replay(const std::function<bool(FakeId)>& wanted, const Deliver& deliver);

  void recordOp(const TracedCall& call, llvm::ArrayRef<at::Tensor> results) override;
  void recordReadBack(const at::Tensor& tensor) override;
  std::string place() const override { return "construction"; }

 private:
  struct GeneratorState {
    size_t before;  // node
    at::Tensor state;
  };

  void noteGenerator();

  StorageTable storages_{c10::kCPU};
  StepRecorder recorder_{storages_};
  std::unique_ptr<Tracer> tracer_;
  size_t recorded_ = 0;
  std::vector<GeneratorState> generator_;  // at the start, and wherever host code set it
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_GRAPH_CONSTRUCTION_H_
