// SPDX-License-Identifier: Apache-2.0
//
// Intercepts every ATen call below autograd while a TracingScope is open, on this thread and on
// autograd's. It makes results without memory and reports the call to an OpSink.
// It is a boxed fallback on kTraceKey, a key that no tensor has: the scope adds it to the
// thread's key set, and autograd copies that set to its own threads.
// Each call is run for real (host numbers, CPU tensors of a CUDA step), decomposed, refused, or
// recorded. The sink does not see views and calls that only change a tensor object.
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
#include "runtime/capture/dispatch/known_sizes.h"
#include "runtime/capture/ops/op_facts.h"
#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {

/// Receives the calls that the fallback intercepts.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  /// Replaces the arguments on the stack by the results.
  virtual void handle(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack) = 0;
  /// The integers that a tensor holds, row by row, where they are known before the step runs.
  virtual std::optional<std::vector<int64_t>> knownNumbers(const at::Tensor& /*tensor*/) {
    return std::nullopt;
  }
  /// Why the exception that follows is thrown.
  virtual void noteRefusal(const std::string& /*why*/) {}
  /// Lets the call go on to the kernel it would have reached.
  static void passOn(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack);
};

/// Receives every recorded call. Results are flattened in the order of the schema.
class OpSink {
 public:
  virtual ~OpSink() = default;
  virtual void recordOp(const TracedCall& call, llvm::ArrayRef<at::Tensor> results) = 0;
  virtual void recordReadBack(const at::Tensor& tensor) = 0;
  /// True if a recorded op wrote the tensor: a real tensor's bytes are then not the step's.
  virtual bool isWritten(const at::Tensor& /*tensor*/) const { return false; }
  /// Where the step is, for messages: "backward of h.3.attn".
  virtual std::string place() const = 0;
};

struct TracerOptions {
  ir::Target target;
  /// Construction: factories on every device give tensors without memory.
  bool allDevices = false;
  std::weak_ptr<const void> origin;  // kept alive by every storage made
  /// Random numbers on the host of a step for another device are drawn for real: its host code runs
  /// once in every step.
  bool drawsOnHost = false;
};

class Tracer : public CallHandler {
 public:
  Tracer(TracerOptions options, OpSink& sink);

  /// What item() returns. It changes from step to step, so steps that use the value differ.
  enum class Poison : uint8_t { kNan, kHuge, kZero, kNegative, kOne };
  void setPoison(Poison poison) { poison_ = poison; }
  /// Asked for each item() before it is recorded: a value that the step does not have to make. One
  /// that is known is not recorded.
  using KnownValueOf = std::function<std::optional<c10::Scalar>(const at::Tensor& tensor)>;
  void setKnownValueOf(KnownValueOf known) { knownValueOf_ = std::move(known); }
  /// Asked for each size that depends on values. An empty function knows none.
  void setSizeOf(SizeOf sizeOf) { sizeOf_ = std::move(sizeOf); }
  using NumbersOf = std::function<std::optional<std::vector<int64_t>>(const at::Tensor& tensor)>;
  void setNumbersOf(NumbersOf numbersOf) { numbersOf_ = std::move(numbersOf); }
  std::optional<std::vector<int64_t>> knownNumbers(const at::Tensor& tensor) override {
    return numbersOf_ ? numbersOf_(tensor) : std::nullopt;
  }
  void noteRefusal(const std::string& why) override;
  /// Called for each item() that was just recorded; returns its value, or nothing to get the
  /// poison. An empty function always gives the poison.
  using ValueOfRead = std::function<std::optional<c10::Scalar>()>;
  void setValueOfRead(ValueOfRead value) { valueOfRead_ = std::move(value); }
  /// Refuses ops after other code set the generator's state. Null: the generator is not watched.
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
  void checkTensors(const OpFacts& op, llvm::ArrayRef<c10::IValue> args);
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
  KnownValueOf knownValueOf_;
  SizeOf sizeOf_;
  NumbersOf numbersOf_;
  GeneratorWatch* generator_ = nullptr;
  std::optional<ir::PlanError> refusal_;
};

/// While it lives, calls of this thread are not traced: inside of a handler.
class NotTraced {
 public:
  NotTraced();
  ~NotTraced();
  NotTraced(const NotTraced&) = delete;
  NotTraced& operator=(const NotTraced&) = delete;

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

/// While it lives, ATen calls of this thread go to `handler`. Scopes do not nest (c10::Error).
/// Scopes of several threads wait for each other, because all share autograd's threads.
class TracingScope {
 public:
  explicit TracingScope(CallHandler& handler);
  ~TracingScope();
  TracingScope(const TracingScope&) = delete;
  TracingScope& operator=(const TracingScope&) = delete;
  /// True while calls of this thread go to a handler; false inside a call that it passes on.
  static bool isOnThisThread();
  /// Of the scope that is open. Only on a thread that is traced.
  static CallHandler& handler();

 private:
  std::unique_lock<std::mutex> turn_;  // declared first, so released last
  c10::impl::IncludeDispatchKeyGuard guard_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_DISPATCH_TRACER_H_
