// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/dispatch/value_checks.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_assert_async.h>
#include <ATen/ops/ctc_loss.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/nanquantile.h>
#include <ATen/ops/quantile.h>
#include <ATen/ops/tensor.h>
#include <torch/library.h>

#include <array>
#include <utility>
#include <vector>

#include "runtime/capture/dispatch/tracer.h"
#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/capture/ops/op_facts.h"
#include "this_torch/value_reads.h"

namespace stowage::runtime {
namespace {

struct ValueCheck {
  bool passes;          // the answer with which the op goes on
  const char* message;  // what libtorch says otherwise
};

thread_local std::optional<ValueCheck> announced;

/// Announces while it lives.
class Announcement {
 public:
  explicit Announcement(ValueCheck check) : before_(std::exchange(announced, check)) {}
  ~Announcement() { announced = before_; }
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

 private:
  std::optional<ValueCheck> before_;
};

constexpr const char* kLengthsAreRead =
    "aten.ctc_loss.Tensor cannot be captured: libtorch reads the lengths on the host, and what it "
    "makes has the longest target's size; pass the lengths as numbers (at::ctc_loss with "
    "IntArrayRef, in Python a list or tuple), or compute them from the step's inputs alone";

constexpr const char* kQuantileIsRead =
    "aten.quantile cannot be captured like this with this torch: on the CPU it reads q on the "
    "host, and where all numbers are one row, their ranks; pass q as a number and give it several "
    "rows, or take elements of sort()";

constexpr ValueCheck kQuantile = {true, "quantile() q values must be in the range [0, 1]"};
constexpr ValueCheck kOverlap = {false, "istft(): window overlap add min is below 1e-11"};

void runAnnounced(const ValueCheck& check, const c10::OperatorHandle& op,
                  torch::jit::Stack* stack) {
  std::optional<Announcement> announcement;
  if (TracingScope::isOnThisThread()) announcement.emplace(check);
  op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
}

void istft(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  runAnnounced(kOverlap, op, stack);
}

/// Whether host code finds numbers in `tensor`: one from outside, or one filled by hand.
bool isReadable(const at::Tensor& tensor) {
  return tensor.is_contiguous() &&
         (!isFake(tensor) || wasTouched(*tensor.storage().unsafeGetStorageImpl()));
}
bool areReadable(const at::Tensor& lengths) {
  return lengths.scalar_type() == c10::kLong && isReadable(lengths);
}

/// quantile(self, q, dim, keepdim, interpolation), or nanquantile
void quantile(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  if (kQuantileReadsRanks && TracingScope::isOnThisThread()) {
    const auto args = torch::jit::last(*stack, op.schema().arguments().size());
    const at::Tensor &self = args[0].toTensor(), &q = args[1].toTensor();
    const auto dim = args[2].toOptional<int64_t>();
    const bool isOneRow = !dim || self.dim() == 0 || self.size(*dim) == self.numel();
    if (isOneRow || q.numel() == 1 || !isReadable(q)) {
      TracingScope::handler().noteRefusal(kQuantileIsRead);
      TORCH_CHECK_NOT_IMPLEMENTED(false, kQuantileIsRead);
    }
  }
  runAnnounced(kQuantile, op, stack);
}

/// The same of a number q. For one q, libtorch looks on the host which rank it is; for two it does
/// not, and the numbers are the same.
template <at::Tensor (*kOfTensor)(const at::Tensor&, const at::Tensor&, std::optional<int64_t>,
                                  bool, c10::string_view)>
void quantileOfNumber(const c10::OperatorHandle& op, c10::DispatchKeySet,
                      torch::jit::Stack* stack) {
  if (!kQuantileReadsRanks || !TracingScope::isOnThisThread()) {
    return runAnnounced(kQuantile, op, stack);
  }
  const std::vector<c10::IValue> args = torch::jit::pop(*stack, op.schema().arguments().size());
  const at::Tensor& self = args[0].toTensor();
  const std::array<double, 2> twice = {args[1].toDouble(), args[1].toDouble()};
  const at::Tensor both =
      kOfTensor(self, at::tensor(c10::ArrayRef<double>(twice), self.options().requires_grad(false)),
                args[2].toOptional<int64_t>(), args[3].toBool(), args[4].toStringView());
  stack->emplace_back(both.select(0, 0));
}

/// cuDNN is asked before the lengths are read, and may take them where they are.
bool mayTakeCudnn(const at::Tensor& logProbs, const at::Tensor& targets) {
  return logProbs.is_cuda() && targets.scalar_type() == c10::kInt &&
         at::globalContext().userEnabledCuDNN();
}

/// ctc_loss.Tensor(log_probs, targets, input_lengths, target_lengths, blank, reduction,
/// zero_infinity): libtorch makes numbers of the lengths. The plan keeps those.
void ctcLoss(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const auto args = torch::jit::last(*stack, op.schema().arguments().size());
  const bool isReadByLibtorch =
      !TracingScope::isOnThisThread() || mayTakeCudnn(args[0].toTensor(), args[1].toTensor()) ||
      (areReadable(args[2].toTensor()) && areReadable(args[3].toTensor()));
  if (!isReadByLibtorch) {
    const auto inputs = TracingScope::handler().knownNumbers(args[2].toTensor());
    const auto targets = TracingScope::handler().knownNumbers(args[3].toTensor());
    if (!inputs || !targets) TracingScope::handler().noteRefusal(kLengthsAreRead);
    TORCH_CHECK_NOT_IMPLEMENTED(inputs && targets, kLengthsAreRead);
    at::Tensor loss = at::ctc_loss(args[0].toTensor(), args[1].toTensor(), *inputs, *targets,
                                   args[4].toInt(), args[5].toInt(), args[6].toBool());
    torch::jit::drop(*stack, args.size());
    stack->emplace_back(std::move(loss));
    return;
  }
  op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
}

bool isQuestion(const OpFacts& op, llvm::ArrayRef<c10::IValue> args) {
  return (op.readsBack || op.name == "aten.equal.default") &&
         args[0].toTensor().scalar_type() == c10::kBool;
}

}  // namespace

void registerValueChecks() {
  static torch::Library cpu(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCPU, __FILE__,
                            __LINE__);
  static torch::Library cuda(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCUDA, __FILE__,
                             __LINE__);
  static const bool kRegistered = [] {
    for (const char* op : {"quantile", "nanquantile"}) {
      cpu.impl(op, torch::CppFunction::makeFromBoxedFunction<&quantile>());
    }
    cpu.impl("quantile.scalar",
             torch::CppFunction::makeFromBoxedFunction<&quantileOfNumber<&at::quantile>>());
    cpu.impl("nanquantile.scalar",
             torch::CppFunction::makeFromBoxedFunction<&quantileOfNumber<&at::nanquantile>>());
    cpu.impl("ctc_loss.Tensor", torch::CppFunction::makeFromBoxedFunction<&ctcLoss>());
    cuda.impl("ctc_loss.Tensor", torch::CppFunction::makeFromBoxedFunction<&ctcLoss>());
    cpu.impl("istft", torch::CppFunction::makeFromBoxedFunction<&istft>());
    return true;
  }();
  static_cast<void>(kRegistered);
}

std::optional<bool> answerAnnounced(const OpFacts& op, llvm::ArrayRef<c10::IValue> args) {
  if (!announced || !isQuestion(op, args)) return std::nullopt;
  const ValueCheck check = *std::exchange(announced, std::nullopt);
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  const at::Tensor& asked = args[0].toTensor();
  at::_assert_async(check.passes ? asked : at::logical_not(asked), check.message);
  return check.passes;
}

}  // namespace stowage::runtime
