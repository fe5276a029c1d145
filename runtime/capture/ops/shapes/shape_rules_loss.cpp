// SPDX-License-Identifier: Apache-2.0
//
// Losses and their gradients. Sources: Loss.cpp, LossNLL2d.cpp, LossMultiMargin.cpp of
// libtorch 2.11; checked against the real ops on the CPU.
#include <ATen/ops/result_type.h>

#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

constexpr int64_t kNoReduction = 0;

Outputs contiguousLikeSecond(const TracedCall& call) {
  return outputs({fresh(call.tensor(1).sizes().vec(), call.tensor(1).scalar_type())});
}
Outputs likeSecond(const TracedCall& call) { return outputs({freshLike(call.tensor(1))}); }

/// loss(input, target, reduction, ...)
Outputs loss(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  return outputs(
      {call.integer(2) == kNoReduction ? freshLike(input) : fresh({}, input.scalar_type())});
}

/// mse_loss(input, target, reduction), smooth_l1_loss(input, target, reduction, beta): the scalar
/// keeps the memory of all terms.
Outputs lossInMemoryOfTerms(const TracedCall& call) {
  const at::Tensor &input = call.tensor(0), &target = call.tensor(1);
  const c10::ScalarType type = at::result_type(input, target);
  const OutputTensor terms = elementwise(call, {input, target}, type);
  if (call.integer(2) == kNoReduction) return outputs({terms});
  OutputTensor sum = fresh({}, type);
  sum.storageBytes = extentOf(terms.shape);
  return outputs({sum});
}

/// binary_cross_entropy(input, target, weight, reduction): reduced in place, in the memory of all.
Outputs binaryCrossEntropy(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  if (call.integer(3) == kNoReduction) return outputs({freshLike(input)});
  OutputTensor sum = fresh({}, input.scalar_type());
  sum.storageBytes = static_cast<int64_t>(input.nbytes());
  return outputs({sum});
}

/// binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)
Outputs crossEntropyWithLogits(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  return outputs(
      {call.integer(4) == kNoReduction ? freshLike(input) : fresh({}, input.scalar_type())});
}

/// nll_loss2d_forward(self, target, weight, reduction, ignore_index) -> loss, total weight
Outputs nllLoss2d(const TracedCall& call) {
  const c10::ScalarType type = call.tensor(0).scalar_type();
  return outputs({call.integer(3) == kNoReduction ? fresh(call.tensor(1).sizes().vec(), type)
                                                  : fresh({}, type),
                  fresh({}, type)});
}

/// multi_margin_loss(self, target, p, margin, weight, reduction)
Outputs multiMargin(const TracedCall& call) {
  const c10::ScalarType type = call.tensor(0).scalar_type();
  return outputs({call.integer(5) == kNoReduction ? fresh(call.tensor(1).sizes().vec(), type)
                                                  : fresh({}, type)});
}

/// multilabel_margin_loss_forward(self [n?, classes], target, reduction) -> loss, target as flags
Outputs multilabelMargin(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  const bool isPerRow = call.integer(2) == kNoReduction && self.dim() > 1;
  return outputs(
      {isPerRow ? fresh({self.size(0)}, self.scalar_type()) : fresh({}, self.scalar_type()),
       fresh(call.tensor(1).sizes().vec(), self.scalar_type())});
}

/// _cudnn_ctc_loss(log_probs [tokens, batch, classes], ...) -> loss, gradient (LossCTC.cpp in
/// cudnn)
Outputs cudnnCtcLoss(const TracedCall& call) {
  const at::Tensor& input = call.tensor(0);
  return outputs({fresh({input.size(1)}, input.scalar_type()), freshContiguous(input)});
}

/// _ctc_loss.Tensor: how much it saves is the length of the longest target.
Outputs ctcLossOfTensors(const TracedCall& /*call*/) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false,
      "the shape of its result depends on values (the longest target), which a static plan "
      "cannot hold; pass the lengths as numbers");
}

/// _log_softmax_backward_data(grad, output, dim, input_dtype): row-major however `grad` lies
/// (structured in SoftMax.cpp); the kernel for tensors without data that `import torch` brings
/// keeps the layout of `grad`.
Outputs logSoftmaxBackward(const TracedCall& call) {
  return outputs({fresh(call.tensor(0).sizes().vec(), call.args[3].toScalarType())});
}

/// _use_cudnn_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank): never for targets
/// on the device (LossCTC.cpp in cudnn); for others only cuDNN knows.
Outputs useCudnnCtcLoss(const TracedCall& call) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !call.device.is_cuda() || call.tensor(1).is_cuda(),
      "cuDNN decides whether it takes targets on the host; put them on the device");
  Outputs answer;
  answer.push_back(plainOutput(false));
  return answer;
}

Outputs useMiopenCtcLoss(const TracedCall& /*call*/) {
  Outputs answer;
  answer.push_back(plainOutput(false));
  return answer;
}

constexpr NamedRule kRules[] = {
    {"aten._ctc_loss.Tensor", ctcLossOfTensors},
    {"aten._ctc_loss_backward.Tensor", contiguousLikeSecond},
    {"aten._ctc_loss_backward.default", contiguousLikeSecond},
    {"aten._cudnn_ctc_loss.default", cudnnCtcLoss},
    {"aten._log_softmax_backward_data.default", logSoftmaxBackward},
    {"aten._use_cudnn_ctc_loss.default", useCudnnCtcLoss},
    {"aten._use_miopen_ctc_loss.default", useMiopenCtcLoss},
    {"aten.binary_cross_entropy.default", binaryCrossEntropy},
    {"aten.binary_cross_entropy_backward.default", likeSecond},
    {"aten.binary_cross_entropy_with_logits.default", crossEntropyWithLogits},
    {"aten.huber_loss.default", loss},
    {"aten.huber_loss_backward.default", contiguousLikeSecond},
    {"aten.mse_loss.default", lossInMemoryOfTerms},
    {"aten.mse_loss_backward.default", contiguousLikeSecond},
    {"aten.multi_margin_loss.default", multiMargin},
    {"aten.multi_margin_loss_backward.default", contiguousLikeSecond},
    {"aten.multilabel_margin_loss_backward.default", contiguousLikeSecond},
    {"aten.multilabel_margin_loss_forward.default", multilabelMargin},
    {"aten.nll_loss2d_backward.default", contiguousLikeSecond},
    {"aten.nll_loss2d_forward.default", nllLoss2d},
    {"aten.smooth_l1_loss.default", lossInMemoryOfTerms},
    {"aten.smooth_l1_loss_backward.default", contiguousLikeSecond},
};

}  // namespace

llvm::ArrayRef<NamedRule> lossRules() { return kRules; }

}  // namespace stowage::runtime
