// SPDX-License-Identifier: Apache-2.0
//
// What the rows of the op table may claim together, and the facts that a wrong row would silently
// turn into wrong bits. That rows agree with the real ops is tested where libtorch is.

#include "ir/graph/op_table.h"

#include <gtest/gtest.h>

namespace stowage::ir {
namespace {

TEST(OpTable, UnknownOpsGetTheCautiousAnswer) {
  for (const char* op : {"aten.no_such_op.default", "", "zzz", "aten.mm", "aten.mm.defaul"}) {
    const OpInfo& unknown = lookUpOp(op);
    EXPECT_FALSE(unknown.known) << op;
    EXPECT_FALSE(unknown.recomputable);
    EXPECT_EQ(unknown.repeatable, Repeatable::kNo);
    EXPECT_EQ(unknown.inPlaceOperand, -1);
    EXPECT_EQ(unknown.cost, CostKind::kBytes);
  }
}

TEST(OpTable, EveryRowIsFoundByItsName) {
  for (const OpInfo& row : allOps()) EXPECT_EQ(&lookUpOp(row.op), &row) << row.op;
}

TEST(OpTable, RowsDoNotContradictThemselves) {
  for (const OpInfo& row : allOps()) {
    EXPECT_TRUE(row.known) << row.op;
    if (row.inPlaceOperand2 >= 0) {
      EXPECT_GE(row.inPlaceOperand, 0) << row.op;
      EXPECT_NE(row.inPlaceOperand, row.inPlaceOperand2) << row.op;
    }
    // Landing on an operand is for single kernels that write nothing else.
    if (row.inPlaceOperand >= 0) {
      EXPECT_TRUE(row.recomputable && !row.random && row.cost == CostKind::kBytes) << row.op;
      EXPECT_EQ(row.repeatable, Repeatable::kYes) << row.op;
    }
    const bool hasForm = row.replayForm[0] != '\0';
    EXPECT_TRUE(!hasForm || (row.recomputable && lookUpOp(row.replayForm).known)) << row.op;
    EXPECT_TRUE(!row.random || row.recomputable) << row.op;
    EXPECT_TRUE(row.cost != CostKind::kFree || row.repeatable == Repeatable::kYes) << row.op;
  }
}

TEST(OpTable, KnowsTheOpsOfTransformersAndVisionModelsInTraining) {
  for (const char* op : {"aten._foreach_add_.Scalar",
                         "aten._fused_adamw_.tensor_lr",
                         "aten._log_softmax.default",
                         "aten._log_softmax_backward_data.default",
                         "aten._safe_softmax.default",
                         "aten._scaled_dot_product_cudnn_attention.default",
                         "aten._scaled_dot_product_cudnn_attention_backward.default",
                         "aten._scaled_dot_product_flash_attention_for_cpu.default",
                         "aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
                         "aten._softmax_backward_data.default",
                         "aten._to_copy.default",
                         "aten._unsafe_view.default",
                         "aten.add.Tensor",
                         "aten.addmm.default",
                         "aten.alias.default",
                         "aten.arange.default",
                         "aten.bernoulli_.float",
                         "aten.bmm.default",
                         "aten.cat.default",
                         "aten.clone.default",
                         "aten.constant_pad_nd.default",
                         "aten.convolution.default",
                         "aten.convolution_backward.default",
                         "aten.cos.default",
                         "aten.detach.default",
                         "aten.div.Scalar",
                         "aten.div_.Scalar",
                         "aten.embedding.default",
                         "aten.embedding_dense_backward.default",
                         "aten.empty_like.default",
                         "aten.expand.default",
                         "aten.gelu.default",
                         "aten.gelu_backward.default",
                         "aten.mean.dim",
                         "aten.mm.default",
                         "aten.mul.Scalar",
                         "aten.mul.Tensor",
                         "aten.native_dropout.default",
                         "aten.native_dropout_backward.default",
                         "aten.native_layer_norm.default",
                         "aten.native_layer_norm_backward.default",
                         "aten.neg.default",
                         "aten.nll_loss_backward.default",
                         "aten.nll_loss_forward.default",
                         "aten.ones.default",
                         "aten.ones_like.default",
                         "aten.pow.Tensor_Scalar",
                         "aten.rsqrt.default",
                         "aten.scalar_tensor.default",
                         "aten.select.int",
                         "aten.select_backward.default",
                         "aten.silu.default",
                         "aten.silu_backward.default",
                         "aten.sin.default",
                         "aten.slice.Tensor",
                         "aten.slice_backward.default",
                         "aten.split.Tensor",
                         "aten.sum.dim_IntList",
                         "aten.t.default",
                         "aten.tanh.default",
                         "aten.tanh_backward.default",
                         "aten.transpose.int",
                         "aten.tril.default",
                         "aten.unsqueeze.default",
                         "aten.view.default",
                         "aten.where.self"}) {
    EXPECT_TRUE(lookUpOp(op).known) << op;
  }
}

TEST(OpTable, OpsThatGiveWrongBitsInPlaceNeverLandOnAnOperand) {
  for (const char* op :
       {"aten._to_copy.default", "aten.flip.default", "aten._softmax.default",
        "aten._log_softmax.default", "aten.native_layer_norm.default", "aten.cumsum.default",
        "aten.mse_loss_backward.default", "aten.native_dropout.default", "aten.clone.default",
        "aten.add_.Tensor", "aten.roll.default", "aten.mm.default", "aten.sum.dim_IntList",
        "aten.smooth_l1_loss_backward.default", "aten.gt.Scalar", "aten.index.Tensor"}) {
    EXPECT_TRUE(lookUpOp(op).known) << op;
    EXPECT_EQ(lookUpOp(op).inPlaceOperand, -1) << op;
  }
}

TEST(OpTable, WhatEagerDoesNotRepeatIsMarked) {
  for (const char* op : {"aten._scaled_dot_product_flash_attention_backward.default",
                         "aten._scaled_dot_product_efficient_attention_backward.default",
                         "aten.index_put_.default", "aten.scatter_add_.default",
                         "aten.index_add.default", "aten.convolution_backward.default"}) {
    EXPECT_EQ(lookUpOp(op).repeatable, Repeatable::kInDeterministicMode) << op;
  }
  for (const char* op : {"aten._scaled_dot_product_cudnn_attention_backward.default",
                         "aten.cumsum.default", "aten.upsample_bilinear2d_backward.default",
                         "aten.nll_loss2d_backward.default", "aten.histc.default"}) {
    EXPECT_EQ(lookUpOp(op).repeatable, Repeatable::kNo) << op;
  }
  for (const char* op : {"aten._scaled_dot_product_cudnn_attention.default", "aten.mm.default",
                         "aten.embedding_dense_backward.default", "aten.native_dropout.default"}) {
    EXPECT_EQ(lookUpOp(op).repeatable, Repeatable::kYes) << op;
  }
}

TEST(OpTable, SideEffectsForbidASecondRunOrHaveAReplayForm) {
  for (const char* op :
       {"aten._fused_adamw_.tensor_lr", "aten._fused_sgd_.default",
        "aten._amp_update_scale_.default", "aten._batch_norm_with_update.default",
        "_c10d_functional.all_reduce.default", "aten._local_scalar_dense.default"}) {
    EXPECT_TRUE(lookUpOp(op).known) << op;
    EXPECT_FALSE(lookUpOp(op).recomputable) << op;
  }
  for (const char* op :
       {"aten.native_batch_norm.default", "aten._native_batch_norm_legit.default"}) {
    EXPECT_TRUE(lookUpOp(op).recomputable) << op;
    EXPECT_STREQ(lookUpOp(op).replayForm, "aten.native_batch_norm.default");
  }
}

TEST(OpTable, WorkIsCountedByKind) {
  EXPECT_EQ(lookUpOp("aten.addmm.default").cost, CostKind::kMatmul);
  EXPECT_EQ(lookUpOp("aten.convolution_backward.default").cost, CostKind::kConvolution);
  EXPECT_EQ(lookUpOp("aten._flash_attention_backward.default").cost, CostKind::kAttention);
  EXPECT_EQ(lookUpOp("aten.transpose.int").cost, CostKind::kFree);
  EXPECT_EQ(lookUpOp("aten.clone.default").cost, CostKind::kBytes);
}

}  // namespace
}  // namespace stowage::ir
