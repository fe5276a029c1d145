// SPDX-License-Identifier: Apache-2.0
//
// A step of ops whose kernels trust their operands: fused optimizers, backward ops that take what
// their forward op saved, ops that take places. As text, for mutations of files; what it learns
// means nothing.
#ifndef STOWAGE_TESTS_FUZZ_KERNEL_STEPS_H_
#define STOWAGE_TESTS_FUZZ_KERNEL_STEPS_H_

namespace stowage::tests {

inline constexpr const char* kKernelStep =
    R"ir(graph @kernels version=1 device="cpu" target="cpu" recipe="step.pt2" {
  input %x : f32[2,3,8,8]
  input %places : i64[2,3,4,4]
  input %tokens : i64[4]
  input %mask : bool[4,6]
  input %rate : f32[]
  frozen %table : f32[10,6]
  parameter %w : f32[4,6]
  parameter %scale : f32[8]
  parameter %shift : f32[8]
  parameter %kernel : f32[3,3,3,3]
  buffer %rm "running_mean" : f32[3]
  buffer %rv "running_var" : f32[3]
  parameter %gamma : f32[3]
  parameter %beta : f32[3]
  state %m "m(w)" : f32[4,6]
  state %v "v(w)" : f32[4,6]
  state %a "a(w)" : f32[4,6]
  state %b "b(w)" : f32[4,6]
  step_counter %t "step(w)" : f32[]
forward "":
  %pool : f32[2,3,4,4], %at : i64[2,3,4,4] = aten.max_pool2d_with_indices.default(%x, [2, 2], [2, 2], [0, 0], [1, 1], false)
  %ln : f32[2,3,8,8], %mean : f32[2,3,8,1], %rstd : f32[2,3,8,1] = aten.native_layer_norm.default(%x, [8], %scale, %shift, 1e-05)
  %gn : f32[2,3,8,8], %gmean : f32[2,3], %grstd : f32[2,3] = aten.native_group_norm.default(%ln, %gamma, %beta, 2, 3, 64, 3, 1e-05)
  %sa : f32[2,3,8,8], %lse : f32[2,3,8] strides=[24,1,3] = aten._scaled_dot_product_flash_attention_for_cpu.default(%gn, %gn, %ln, 0.0, false, none, none)
  %e : f32[4,6] = aten.embedding.default(%table, %tokens, -1, false, false)
  %picked : f32[4,6] = aten.index.Tensor(%table, [%tokens])
  %p : f32[4,6] = aten._softmax.default(%e, 1, false)
  %cv : f32[2,3,8,8] = aten.convolution.default(%x, %kernel, %gamma, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
  %bn : f32[2,3,8,8], %bmean : f32[3], %binv : f32[3] = aten.native_batch_norm.default(%cv, %gamma, %beta, inout %rm, inout %rv, true, 0.1, 1e-05)
  %loss "loss" output : f32[] = aten.sum.default(%sa, none)
backward "":
  %dpool : f32[2,3,8,8] = aten.max_pool2d_with_indices_backward.default(%pool, %x, [2, 2], [2, 2], [0, 0], [1, 1], false, %at)
  %dq : f32[2,3,8,8] strides=[192,8,24,1], %dk : f32[2,3,8,8] strides=[192,8,24,1], %dv : f32[2,3,8,8] strides=[192,8,24,1] = aten._scaled_dot_product_flash_attention_for_cpu_backward.default(%dpool, %gn, %gn, %ln, %sa, %lse, 0.0, false, none, none)
  %dgn : f32[2,3,8,8], %dgamma : f32[3], %dbeta : f32[3] = aten.native_group_norm_backward.default(%dpool, %ln, %gmean, %grstd, %gamma, 2, 3, 64, 3, [true, true, true])
  %dln : f32[2,3,8,8], %dscale : f32[8], %dshift : f32[8] = aten.native_layer_norm_backward.default(%dgn, %x, [8], %mean, %rstd, %scale, %shift, [true, true, true])
  %dbn : f32[2,3,8,8], %dg2 : f32[3], %db2 : f32[3] = aten.native_batch_norm_backward.default(%bn, %cv, %gamma, %rm, %rv, %bmean, %binv, true, 1e-05, [true, true, true])
  %dx : f32[2,3,8,8], %dkernel : f32[3,3,3,3], %dg3 : f32[3] = aten.convolution_backward.default(%dbn, %x, %kernel, [3], [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [true, true, true])
  %de : f32[10,6] = aten.embedding_dense_backward.default(%p, %tokens, 10, -1, false)
  %dp : f32[4,6] = aten._softmax_backward_data.default(%e, %p, 1, dtype(f32))
  %dm : f32[4,6] = aten.native_dropout_backward.default(%dp, %mask, 2.0)
  %g : f32[4,6] = aten.add.Tensor(%dm, %picked, 1)
optimizer "":
  aten._foreach_add_.Scalar([inout %t], 1)
  aten._fused_adamw_.tensor_lr([inout %w], [inout %g], [inout %m], [inout %v], values[], [%t], %rate, 0.9, 0.95, 0.1, 1e-08, false, false, none, none)
  aten._fused_adam_.default([inout %w], [inout %g], [inout %m], [inout %v], [inout %a], [%t], 0.01, 0.9, 0.95, 0.1, 1e-08, true, false, none, none)
  aten._fused_sgd_.default([inout %w], [inout %g], [inout %b], 0.1, 0.9, 0.01, 0.0, false, false, false, none, none)
  aten._fused_adagrad_.default([inout %w], [inout %g], [inout %a], [inout %t], 0.01, 0.0, 0.0, 1e-08, false, none, none)
  aten.add_.Tensor(inout %scale, %dscale, -0.01)
  aten.add_.Tensor(inout %shift, %dshift, -0.01)
  aten.add_.Tensor(inout %kernel, %dkernel, -0.01)
  aten.addcmul_.default(inout %gamma, %dgamma, %dbeta, -0.01)
  aten.addcdiv_.default(inout %beta, %dbeta, %gamma, -0.01)
}
)ir";

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_FUZZ_KERNEL_STEPS_H_
