// SPDX-License-Identifier: Apache-2.0
//
// Sees every ATen call that reaches the dispatcher below autograd while a TracingScope is open, on
// this thread and on autograd's, gives it results without memory, and tells a sink.
// A boxed fallback on DispatchKey::Fake, which no tensor carries: the scope adds it to the thread's
// key set, and autograd hands that set on to its own threads.
// Decides per call: run for real (host numbers, CPU tensors of a CUDA step), decompose, refuse, or
// record. Views and calls that only change a tensor object are not told to the sink.
// Invariants: a refused or wrong call throws c10::Error; the first one is kept with its reason.
// Not here: what is done with the calls (step_recorder.h, construction.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_DISPATCH_TRACER_H_
#define STOWAGE_RUNTIME_CAPTURE_DISPATCH_TRACER_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/error.h"
#include "ir/schedule/target.h"
#include "runtime/capture/dispatch/generator_watch.h"
#include "runtime/capture/ops/op_facts.h"
#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {

/// What the fallback hands its calls to.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  /// Replaces the arguments on the stack by the results.
  virtual void handle(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack) = 0;
  /// Lets the call go on to the kernel it would have reached.
  static void passOn(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack);
};

/// Told of every call that counts. Results are flattened in the order of the schema.
class OpSink {
 public:
  virtual ~OpSink() = default;
  virtual void recordOp(const TracedCall& call, llvm::ArrayRef<at::Tensor> results) = 0;
  virtual void recordReadBack(const at::Tensor& tensor) = 0;
  /// Did a recorded op write the tensor, so that a real one's bytes are not what the step has?
  virtual bool isWritten(const at::Tensor& /*tensor*/) const { return false; }
  /// Where the step is, for messages: "backward of h.3.attn".
  virtual std::string place() const = 0;
};

struct TracerOptions {
  ir::Target target;
  /// Construction: factories on every device give tensors without memory.
  bool allDevices = false;
  std::weak_ptr<const void> origin;  // kept alive by every storage made
};

class Tracer : public CallHandler {
 public:
  Tracer(TracerOptions options, OpSink& sink);

  /// What item() gives; changed from step to step, so that a value that reaches the step shows.
  enum class Poison : uint8_t { kNan, kHuge, kZero, kNegative, kOne };
  void setPoison(Poison poison) { poison_ = poison; }
  /// Asked for the value of each item() that was just recorded; where it has none, the poison is
  /// given. Empty: no questions.
  using ValueOfRead = std::function<std::optional<c10::Scalar>()>;
  void setValueOfRead(ValueOfRead value) { valueOfRead_ = std::move(value); }
  /// Refuses ops after somebody set the generator's state. Null: nobody watches.
  void setGeneratorWatch(GeneratorWatch* watch) { generator_ = watch; }

  /// Why the first call that threw did, as an error; success when none did.
  ir::Error takeRefusal();
  c10::DeviceType device() const { return device_; }

  void handle(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
              torch::jit::Stack* stack) override;

 private:
  bool runsForReal(const OpFacts& op, llvm::ArrayRef<c10::IValue> args) const;
  void runForReal(const OpFacts& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
  void trace(const OpFacts& op, torch::jit::Stack* stack);
  void expandOneHot(const OpFacts& op, torch::jit::Stack* stack);
  void checkArguments(const OpFacts& op, llvm::ArrayRef<c10::IValue> args);
  void readBack(const OpFacts& op, torch::jit::Stack* stack);
  void forbidAccessToArguments(const TracedCall& call);
  [[noreturn]] void refuse(const OpFacts& op, const std::string& why);
  [[noreturn]] void refuse(const OpFacts& op, ir::Error why);
  [[noreturn]] void fail(const OpFacts& op, ir::ErrorCode code, const std::string& why);

  TracerOptions options_;
  OpSink& sink_;
  c10::DeviceType device_;
  OpFactsTable ops_;
  std::recursive_mutex mutex_;  // forward and backward are on different threads for CUDA
  Poison poison_ = Poison::kOne;
  ValueOfRead valueOfRead_;
  GeneratorWatch* generator_ = nullptr;
  std::optional<ir::PlanError> refusal_;
};

/// While it lives, ATen calls of this thread go to `handler`. Scopes do not nest (c10::Error);
/// those of several threads take turns, because autograd's threads are everybody's.
class TracingScope {
 public:
  explicit TracingScope(CallHandler& handler);
  ~TracingScope();
  TracingScope(const TracingScope&) = delete;
  TracingScope& operator=(const TracingScope&) = delete;
  /// Whether calls of this thread go to a handler: not inside of what the handler passes on.
  static bool isOnThisThread();

 private:
  std::unique_lock<std::mutex> turn_;  // first: the others go before it
  c10::impl::IncludeDispatchKeyGuard guard_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_DISPATCH_TRACER_H_
