// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/internals/sdpa_choice.h"

#include <ATen/Context.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "this_torch/attention_filters.h"

namespace stowage::runtime {
namespace {

using at::SDPBackend;

struct Machine {
  int major, minor, cudnn;
  explicit Machine(const ir::Target& target)
      : major(target.computeCapability / 10),
        minor(target.computeCapability % 10),
        cudnn(target.cudnnVersion) {}
  int capability() const { return major * 10 + minor; }
  bool isWithin(int from, int to) const { return capability() >= from && capability() <= to; }
};

bool isHalf(const at::Tensor& tensor) {
  return tensor.scalar_type() == c10::kHalf || tensor.scalar_type() == c10::kBFloat16;
}

bool haveOneType(const sdp::sdp_params& call) {
  return call.query.dtype() == call.key.dtype() && call.query.dtype() == call.value.dtype();
}

bool isLowPrecision(const sdp::sdp_params& call, const Machine& machine) {
  const bool allowed = machine.major >= 8 ? isHalf(call.query) : call.query.dtype() == c10::kHalf;
  return allowed && haveOneType(call);
}

bool isStrictlyDeterministic() {
  const at::Context& context = at::globalContext();
  return context.deterministicAlgorithms() && !context.deterministicAlgorithmsWarnOnly();
}

bool cudnnTakesShapes(const sdp::sdp_params& call, const Machine& machine) {
  constexpr int64_t kMaxBatchOrHeads = 65535;
  const bool takesWide = machine.major == 9 || (machine.major == 10 && machine.cudnn > 92200);
  const int64_t width = call.query.size(3), valueWidth = call.value.size(3);
  const bool hasOwnKernel = machine.major == 10 && width == 192 && valueWidth == 128;
  const int64_t limit = takesWide ? 256 : hasOwnKernel ? 192 : 128;
  return call.query.size(0) <= kMaxBatchOrHeads && call.query.size(1) <= kMaxBatchOrHeads &&
         width <= limit && valueWidth <= limit && width % 8 == 0 && valueWidth % 8 == 0 &&
         call.key.size(2) != 1 && (call.dropout == 0 || call.query.size(2) != 1);
}

bool canUseCudnn(const sdp::sdp_params& call, const Machine& machine) {
  if (machine.cudnn < 90000 || !at::globalContext().userEnabledCuDNNSDP()) return false;
  if (call.dropout > 0 && machine.cudnn > 91100 && machine.cudnn < 91400) return false;
  return sdp::check_tensor_shapes(call, false) && !isStrictlyDeterministic() &&
         isLowPrecision(call, machine) && sdp::check_attn_mask_shape(call, false) &&
         machine.isWithin(80, 121) && sdp::check_nonzero_sequence_lengths_dense(call, false) &&
         sdp::check_last_dim_stride_equals_1_dense<true>(call, false) &&
         headsFit<true, false>(call) && cudnnTakesShapes(call, machine) &&
         cudnnTakesCall(call, machine.capability(), machine.cudnn);
}

/// Backward of wide heads does not fit smaller chips.
bool flashBackwardFits(const sdp::sdp_params& call, const Machine& machine) {
  const bool isSmall = machine.isWithin(86, 89) || machine.isWithin(120, 121);
  if (!isSmall || !sdp::input_requires_grad(call)) return true;
  const int64_t width = call.query.size(3);
  return width <= 192 || (call.dropout == 0 && width > 224);
}

bool canUseFlash(const sdp::sdp_params& call, const Machine& machine) {
  if (!sdp::check_runtime_disabled_flash(call, false) || !sdp::check_tensor_shapes(call, false)) {
    return false;
  }
  const int64_t width = call.query.size(3);
  const bool oneWidth = width == call.key.size(3) && width == call.value.size(3) && width <= 256;
  const bool isSquare = call.query.size(2) == call.key.size(2);
  return sdp::check_for_attn_mask(call, false) && oneWidth && machine.isWithin(80, 121) &&
         flashBackwardFits(call, machine) && (!call.is_causal || isSquare) &&
         isLowPrecision(call, machine) && headsFit<true>(call) &&
         sdp::check_nonzero_sequence_lengths_dense(call, false) &&
         sdp::check_last_dim_stride_equals_1_dense<true>(call, false);
}

bool efficientTakesLayout(const sdp::sdp_params& call, const Machine& machine) {
  const bool half = isHalf(call.query);
  const bool tensorCores = machine.major >= 8 || (machine.major >= 7 && half);
  int64_t alignment = machine.major >= 8 ? 4 : 1;
  if (tensorCores) alignment = std::max<int64_t>(alignment, 128 / (half ? 16 : 32));
  const int64_t width = call.query.size(3), valueWidth = call.value.size(3);
  return width == call.key.size(3) && width % alignment == 0 && width > 0 &&
         valueWidth % alignment == 0 && valueWidth > 0 &&
         efficientTakesOffsets(call, alignment, machine.capability());
}

bool canUseEfficient(const sdp::sdp_params& call, const Machine& machine) {
  const auto type = call.query.scalar_type();
  const bool typeFits =
      type == c10::kFloat || type == c10::kHalf || (type == c10::kBFloat16 && machine.major >= 8);
  return sdp::check_runtime_disabled_mem_efficient(call, false) && machine.isWithin(50, 121) &&
         sdp::check_tensor_shapes(call, false) && efficientTakesLayout(call, machine) &&
         sdp::check_nonzero_sequence_lengths_dense(call, false) &&
         sdp::check_last_dim_stride_equals_1_dense<false>(call, false) &&
         headsFit<kEfficientGroupsQueries>(call) && typeFits && haveOneType(call);
}

bool canUse(SDPBackend backend, const sdp::sdp_params& call, const Machine& machine) {
  switch (backend) {
    case SDPBackend::cudnn_attention:
      return canUseCudnn(call, machine);
    case SDPBackend::flash_attention:
      return canUseFlash(call, machine);
    case SDPBackend::efficient_attention:
      return canUseEfficient(call, machine);
    case SDPBackend::math:
      return at::globalContext().userEnabledMathSDP();
    default:
      return false;
  }
}

constexpr std::array<SDPBackend, at::num_sdp_backends> kDefaultOrder = {
    SDPBackend::flash_attention, SDPBackend::efficient_attention, SDPBackend::math,
    SDPBackend::cudnn_attention, SDPBackend::overrideable};

/// cuDNN comes first on Hopper and data centre Blackwell, unless the user set an order.
std::array<SDPBackend, at::num_sdp_backends> orderFor(const Machine& machine) {
  auto order = at::globalContext().sDPPriorityOrder();
  const bool prefersCudnn = machine.cudnn > 91500 && (machine.major == 9 || machine.major == 10) &&
                            c10::utils::check_env("TORCH_CUDNN_SDPA_DEPRIORITIZED") != true;
  if (prefersCudnn && order == kDefaultOrder) {
    order = {SDPBackend::cudnn_attention, SDPBackend::flash_attention,
             SDPBackend::efficient_attention, SDPBackend::math, SDPBackend::overrideable};
  }
  return order;
}

using Stub = std::remove_reference_t<decltype(at::native::_fused_sdp_choice_stub)>;
using BaseStub = at::native::DispatchStub<at::native::fused_sdp_choice_fn, Stub>;
using Choice = at::native::fused_sdp_choice_fn;

std::atomic<const ir::Target*> pinnedTarget{nullptr};
bool (*hasNoMemory)(const at::Tensor&) = nullptr;
Choice previousChoice = nullptr;

// NOLINTNEXTLINE(readability-function-size): libtorch's parameters
int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& mask, double dropout, bool isCausal,
               std::optional<double> scale, bool groupsQueries) {
  const ir::Target* target = pinnedTarget.load();
  if (target == nullptr || !hasNoMemory(query)) {
    TORCH_CHECK(previousChoice != nullptr, "attention on cuda in a process without CUDA");
    return previousChoice(query, key, value, mask, dropout, isCausal, scale, groupsQueries);
  }
  const AttentionCall call{query, key, value, mask, dropout, isCausal, groupsQueries};
  return static_cast<int64_t>(chooseAttention(call, *target));
}

/// libtorch lets its stub's CUDA entry be set, but not be read. Naming a private member in an
/// explicit instantiation is allowed, and gives the pointer to it.
template <auto Member>
struct StubEntry {
  friend at::native::DispatchStubImpl& entryOf(BaseStub& stub) { return stub.*Member; }
};
template struct StubEntry<&BaseStub::impl>;
at::native::DispatchStubImpl& entryOf(BaseStub& stub);

}  // namespace

SDPBackend chooseAttention(const AttentionCall& call, const ir::Target& target) {
  const Machine machine(target);
  const sdp::sdp_params params = forFilters({call.query, call.key, call.value, call.mask,
                                             call.dropout, call.isCausal, call.groupsQueries});
  for (const SDPBackend backend : orderFor(machine)) {
    if (canUse(backend, params, machine)) return backend;
  }
  return SDPBackend::error;
}

PinnedAttention::PinnedAttention(const ir::Target& target, bool (*isFake)(const at::Tensor&)) {
  BaseStub& stub = at::native::_fused_sdp_choice_stub;
  void* current = entryOf(stub).cuda_dispatch_ptr;
  previousChoice = reinterpret_cast<Choice>(current);
  hasNoMemory = isFake;
  pinnedTarget.store(&target);
  stub.set_cuda_dispatch_ptr(&choose);
}

PinnedAttention::~PinnedAttention() {
  at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(previousChoice);
  pinnedTarget.store(nullptr);
}

}  // namespace stowage::runtime
