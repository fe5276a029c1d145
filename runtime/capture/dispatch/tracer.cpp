// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/dispatch/tracer.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <atomic>
#include <cmath>
#include <utility>

#include "runtime/capture/dispatch/host_numbers.h"
#include "runtime/capture/dispatch/lazy_views.h"
#include "runtime/capture/dispatch/masked_scatter.h"
#include "runtime/capture/dispatch/value_checks.h"
#include "runtime/capture/ops/backward_advice.h"
#include "runtime/capture/ops/call_results.h"
#include "runtime/capture/ops/encode_argument.h"
#include "runtime/torch/internals/trace_key.h"
#include "runtime/torch/torch_boundary.h"
#include "runtime/torch/torch_types.h"
#include "this_torch/python_first.h"

namespace stowage::runtime {
namespace {

std::atomic<CallHandler*> activeHandler{nullptr};

c10::DispatchKeySet afterTracing(c10::DispatchKeySet keys) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kTraceKey);
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (pythonTook(op, afterTracing(keys), kTraceKey, stack)) return;
  CallHandler* handler = activeHandler.load();
  TORCH_CHECK(handler != nullptr, "an op of a captured step ran after its capture was over");
  handler->handle(op, keys, stack);
}

/// On the CPU, one_hot's kernel for autograd looks at its values before anything below autograd is
/// asked: while tracing, the whole call goes to the fallback.
void oneHot(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (TracingScope::isOnThisThread()) {
    const auto below = (keys & c10::after_ADInplaceOrView_keyset) | c10::DispatchKeySet(kTraceKey);
    return op.redispatchBoxed(below, stack);
  }
  op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
}

void registerOneHot() {
  static torch::Library cpu(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCPU, __FILE__,
                            __LINE__);
  static const bool kRegistered = [] {
    cpu.impl("one_hot", torch::CppFunction::makeFromBoxedFunction<&oneHot>());
    return true;
  }();
  static_cast<void>(kRegistered);
}

void registerFallback() {
  static torch::Library library(torch::Library::IMPL, "_", kTraceKey, __FILE__, __LINE__);
  static const bool kRegistered = [] {
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
    return true;
  }();
  static_cast<void>(kRegistered);
}

llvm::ArrayRef<c10::IValue> argumentsOf(const OpFacts& op, const torch::jit::Stack& stack) {
  return llvm::ArrayRef<c10::IValue>(stack).take_back(op.schema().arguments().size());
}

void replaceArguments(const OpFacts& op, torch::jit::Stack* stack, torch::jit::Stack results) {
  torch::jit::drop(*stack, op.schema().arguments().size());
  for (c10::IValue& value : results) stack->push_back(std::move(value));
}

/// record_function() marks times for a profiler, and computes nothing.
bool isOfProfiler(const c10::OperatorHandle& op) {
  return llvm::StringRef(op.operator_name().name).startswith("profiler::");
}

constexpr const char* kNoRule = "no rule says what shape its results have";
constexpr const char* kGeneratorSet =
    "before it, the step sets the state of libtorch's random number generator (manual_seed, "
    "set_state, or a draw on the host), which a plan does not do: seed before the step; where this "
    "is checkpointing by hand, leave it to the plan, whose recomputed ops draw the same numbers";
constexpr const char* kNoCudaRule =
    "how its results are laid out on CUDA was never compared with a GPU; the CPU captures it";
constexpr const char* kLazyView =
    "it takes a view by conj() (or imag() of one) as it is, whose bytes are other numbers than it "
    "stands for; give it resolve_conj() (or resolve_neg()) of the view, and where libtorch's "
    "backward made the view, compute with real and imaginary parts";

constexpr const char* kHostNumberWritten =
    "it writes a value of the step into a tensor without dimensions on the CPU, which an optimizer "
    "uses as a number of the host; make that state with one dimension (torch.zeros(1))";

/// What equal(a, b) says whatever the values are, if it does; NaN in a tensor compared with itself
/// is left aside. libtorch's attention module asks it of query, key and value.
std::optional<bool> knownEquality(const OpFacts& op, llvm::ArrayRef<c10::IValue> args) {
  if (op.name != "aten.equal.default") return std::nullopt;
  const at::Tensor &a = args[0].toTensor(), &b = args[1].toTensor();
  if (a.sizes() != b.sizes()) return false;
  const bool isSame = a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl() &&
                      a.storage_offset() == b.storage_offset() && a.strides() == b.strides() &&
                      a.scalar_type() == b.scalar_type();
  return isSame ? std::optional(true) : std::nullopt;
}

/// Of integers: one, what no count is, none, many, a few.
c10::Scalar poisonValue(Tracer::Poison poison, c10::ScalarType type) {
  constexpr int64_t kIntegers[] = {1, -2, 0, 1021, 3};
  constexpr double kNumbers[] = {NAN, 1e30, 0.0, -1e30, 1.0};
  const auto order = static_cast<size_t>(poison);
  if (type == c10::ScalarType::Bool) return order % 2 == 0;
  if (c10::isIntegralType(type, /*includeBool=*/false)) return kIntegers[order];
  return kNumbers[order];
}

}  // namespace

void CallHandler::passOn(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                         torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard notTraced(kTraceKey);
  op.redispatchBoxed(afterTracing(keys), stack);
}

Tracer::Tracer(TracerOptions options, OpSink& sink)
    : options_(std::move(options)), sink_(sink), device_(toDevice(options_.target.device).type()) {}

ir::Error Tracer::takeRefusal() {
  if (!refusal_) return ir::success();
  return ir::makeError(*std::exchange(refusal_, std::nullopt));
}

void Tracer::noteRefusal(const std::string& why) {
  if (!refusal_) refusal_.emplace(ir::ErrorCode::kUnsupported, why);
}

void Tracer::fail(const OpFacts& op, ir::ErrorCode code, const std::string& why) {
  const std::string text = op.name + " (" + sink_.place() + ") " + why;
  if (!refusal_) refusal_.emplace(code, text);
  TORCH_CHECK_WITH(OutOfMemoryError, code != ir::ErrorCode::kOutOfDeviceMemory, text);
  TORCH_CHECK(false, text);
}

void Tracer::refuse(const OpFacts& op, const std::string& why) {
  const char* advice = findBackwardAdvice();
  fail(op, ir::ErrorCode::kUnsupported,
       "cannot be captured: " + why + (advice == nullptr ? "" : std::string("; ") + advice));
}

// Memory that this machine refuses says nothing about the step.
void Tracer::refuse(const OpFacts& op, ir::Error why) {
  const ir::PlanError found = ir::takePayload(std::move(why));
  if (found.code() == ir::ErrorCode::kOutOfDeviceMemory)
    fail(op, found.code(), "while it was captured: " + found.text());
  refuse(op, found.text());
}

bool Tracer::runsForReal(const OpFacts& op, llvm::ArrayRef<c10::IValue> args) const {
  if (worksOnHostNumbers(op, args)) return true;
  bool anyTensor = false, anyFake = false, anyOnDevice = false, allNumbers = true;
  forEachTensor(args, [&](const at::Tensor& tensor) {
    anyTensor = true;
    anyFake = anyFake || isFake(tensor);
    anyOnDevice = anyOnDevice || tensor.device().type() == device_;
    allNumbers = allNumbers && isWrappedNumber(tensor);
  });
  if (anyFake) return false;
  if (op.readsBack && anyTensor && !allNumbers) return !sink_.isWritten(args.front().toTensor());
  if (anyTensor && allNumbers) return true;
  if (options_.allDevices || anyOnDevice) return false;
  return deviceOfCall(args).type() != device_;
}

void Tracer::runForReal(const OpFacts& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (op.random && !options_.drawsOnHost)
    refuse(op, "it draws random numbers on the host, outside of the step's device");
  passOn(op.handle, keys, stack);
}

void Tracer::checkTensors(const OpFacts& op, llvm::ArrayRef<c10::IValue> args) {
  forEachTensor(args, [&](const at::Tensor& tensor) {
    if (tensor.layout() != c10::kStrided || tensor.is_quantized() || tensor.is_nested()) {
      refuse(op, "it takes a sparse, nested or quantized tensor");
    }
    if (!toDType(tensor.scalar_type())) {
      refuse(op, std::string("it takes a tensor of type ") + c10::toString(tensor.scalar_type()));
    }
  });
}

void Tracer::handle(const c10::OperatorHandle& handle, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
  const std::lock_guard lock(mutex_);
  if (isOfProfiler(handle)) return passOn(handle, keys, stack);
  const OpFacts& op = ops_.lookUp(handle);
  const llvm::ArrayRef<c10::IValue> args = argumentsOf(op, *stack);
  if (runsForReal(op, args)) return runForReal(op, keys, stack);
  if (const std::optional<bool> answer = knownEquality(op, args))
    return replaceArguments(op, stack, {c10::IValue(*answer)});
  if (const std::optional<bool> answer = answerAnnounced(op, args))
    return replaceArguments(op, stack, {c10::IValue(*answer)});
  checkTensors(op, args);
  if (sizeOf_ && op.sizedByValues) {
    if (std::optional<torch::jit::Stack> results = callWithKnownSize(op, args, sizeOf_))
      return replaceArguments(op, stack, std::move(*results));
  }
  if (op.refusal != nullptr) refuse(op, op.refusal);
  if (op.readsBack) return readBack(op, stack);
  // t_, squeeze_ and the like change sizes and strides of the tensor object: there is nothing to
  // record, and their kernels touch no data.
  if (op.changesShape) return passOn(handle, keys, stack);
  if (takesRateOfHost(op, args)) return callWithRate(op, stack);
  if (takesListOfHostNumbers(op, args))
    return handle.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd, *stack);
  if (op.resultsBy == ResultsBy::kComposite) {
    if (op.name == "aten.one_hot.default") return expandOneHot(op, stack);
    return handle.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
  }
  if (op.resultsBy == ResultsBy::kNothing) {
    refuse(op, kNoRule);
  }
  if (op.ruleOnlyForCpu && deviceOfCall(args).is_cuda()) refuse(op, kNoCudaRule);
  if (takesLazyView(args)) {
    if (std::optional<at::Tensor> copied = copyLazyView(op, args))
      return replaceArguments(op, stack, {c10::IValue(std::move(*copied))});
  }
  trace(op, stack);
}

/// What libtorch's one_hot does after its checks; scatter_ checks values when it runs.
void Tracer::expandOneHot(const OpFacts& op, torch::jit::Stack* stack) {
  const llvm::ArrayRef<c10::IValue> args = argumentsOf(op, *stack);
  const at::Tensor classes = args[0].toTensor();
  const int64_t count = args[1].toInt();
  TORCH_CHECK(classes.scalar_type() == c10::kLong, "one_hot takes int64, found ", classes.dtype());
  if (count < 1) {
    refuse(op, "without num_classes the shape of its result depends on values; give num_classes");
  }
  std::vector<int64_t> sizes = classes.sizes().vec();
  sizes.push_back(count);
  at::Tensor result = at::zeros(sizes, classes.options());
  result.scatter_(-1, classes.unsqueeze(-1), 1);
  replaceArguments(op, stack, {c10::IValue(std::move(result))});
}

void Tracer::trace(const OpFacts& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard notTraced(kTraceKey);
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  if (generator_ != nullptr && !generator_->isUntouched()) refuse(op, kGeneratorSet);
  takeAsNumbers(op, stack);
  const llvm::ArrayRef<c10::IValue> args = argumentsOf(op, *stack);
  if (writesHostNumber(op, args)) refuse(op, kHostNumberWritten);
  const TracedCall call{
      .op = op, .args = args, .target = options_.target, .device = deviceOfCall(args)};
  ir::Expected<CallResults> results =
      callTorch("", [&] { return makeResults(call, options_.origin.lock()); });
  if (!results) {
    const ir::PlanError found = ir::takePayload(results.takeError());
    // The op is made of another one, which has none.
    if (llvm::StringRef(found.text()).contains("Meta tensors")) refuse(op, kNoRule);
    if (found.code() == ir::ErrorCode::kUnsupported) refuse(op, found.text());
    fail(op, found.code(), "fails: " + found.text());
  }
  // A question that the rule has answered (which kernel libtorch would take) does nothing.
  const bool isAnswer = results->tensors.empty() && !results->values.empty();
  if ((!results->onlyViews && !isAnswer) || !op.writtenArguments.empty()) {
    if (!op.emptyFactory && takesLazyView(args)) refuse(op, kLazyView);
    if (ir::Error error = callTorch("", [&] { sink_.recordOp(call, results->tensors); })) {
      refuse(op, std::move(error));
    }
    forbidAccessToArguments(call);
  }
  if (op.random && generator_ != nullptr) generator_->moveOn();
  replaceArguments(op, stack, std::move(results->values));
}

void Tracer::readBack(const OpFacts& op, torch::jit::Stack* stack) {
  const at::Tensor tensor = argumentsOf(op, *stack).front().toTensor();
  if (knownValueOf_) {
    if (const std::optional<c10::Scalar> known = knownValueOf_(tensor))
      return replaceArguments(op, stack, {c10::IValue(*known)});
  }
  if (findBackwardAdvice() != nullptr) refuse(op, "item() gives a value to the host");
  if (ir::Error error = callTorch("", [&] { sink_.recordReadBack(tensor); })) {
    refuse(op, std::move(error));
  }
  const std::optional<c10::Scalar> value = valueOfRead_ ? valueOfRead_() : std::nullopt;
  replaceArguments(op, stack,
                   {c10::IValue(value ? *value : poisonValue(poison_, tensor.scalar_type()))});
}

/// A kernel now owns these bytes: what host code would find there is not what the step computes.
void Tracer::forbidAccessToArguments(const TracedCall& call) {
  for (const uint32_t index : call.op.writtenArguments) {
    if (!call.args[index].isTensor()) continue;
    const at::Tensor& tensor = call.args[index].toTensor();
    if (isFake(tensor)) forbidAccess(*tensor.storage().unsafeGetStorageImpl());
  }
}

namespace {
// Casts were recorded where autocast made them.
const c10::DispatchKeySet kAboveRecorded =
    c10::autocast_dispatch_keyset | c10::DispatchKeySet(kTraceKey);

std::unique_lock<std::mutex> takeTurn() {
  static std::mutex oneAtATime;
  TORCH_CHECK(!TracingScope::isOnThisThread(),
              "a WithoutMemory scope is open on this thread (or a step is being traced), expected "
              "one at a time");
  return std::unique_lock(oneAtATime);
}
}  // namespace

NotTraced::NotTraced() : guard_(kAboveRecorded) {}
NotTraced::~NotTraced() = default;

TracingScope::TracingScope(CallHandler& handler)
    : turn_(takeTurn()), guard_(c10::DispatchKeySet(kTraceKey)) {
  registerFallback();
  registerOneHot();
  registerMaskedScatter();
  registerValueChecks();
  activeHandler.store(&handler);
}

TracingScope::~TracingScope() { activeHandler.store(nullptr); }

CallHandler& TracingScope::handler() { return *activeHandler.load(); }

bool TracingScope::isOnThisThread() { return c10::impl::tls_is_dispatch_key_included(kTraceKey); }

}  // namespace stowage::runtime
