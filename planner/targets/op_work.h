// SPDX-License-Identifier: Apache-2.0
//
// What a node asks of a GPU's kernels: which kind of kernel, and how much work of each sort. Graph
// in, numbers out. Kinds are told by op name, dtypes, strides and sizes, never by a model.
#ifndef STOWAGE_PLANNER_TARGETS_OP_WORK_H_
#define STOWAGE_PLANNER_TARGETS_OP_WORK_H_

#include <cstdint>

#include "ir/base/units.h"
#include "ir/graph/graph.h"

namespace stowage::planner {

/// Kernels of one kind reach the same share of a GPU's rates (op_efficiency.cpp).
enum class WorkKind : uint8_t {
  kMatmul,           // on tensor cores, in f16 and bf16
  kUnalignedMatmul,  // the same with rows that do not begin at multiples of 16 bytes
  kVectorMatmul,     // f32 and f64: libtorch's default is not to use TF32
  kAttention,        // fused
  kAttentionBackward,
  kConvolution,  // on tensor cores; f32 in TF32, libtorch's default
  kConvolutionBackward,
  kNarrowConvolution,  // a number of channels that tensor cores do not take
  kElementwise,        // operands laid out alike
  kMath,               // the same with a transcendental function or a random number per element
  kWalk,               // operands laid out unlike: broadcast, strided, of several dtypes; pooling
  kScatter,            // gradients added at indices
  kEmbeddingBackward,  // sorted indices, then sums
  kReduction,
  kSoftmax,
  kSoftmaxBackward,
  kNorm,  // of rows: layer, RMS and group norm
  kNormBackward,
  kBatchNorm,  // ATen's kernels
  kBatchNormBackward,
  kCudnnBatchNorm,
  kCudnnBatchNormBackward,
  kOptimizer,  // one kernel over many tensors
};

/// What the floating point operations run on.
enum class FlopUnit : uint8_t { kDType, kTf32, kVector };

struct OpWork {
  WorkKind kind = WorkKind::kElementwise;
  FlopUnit unit = FlopUnit::kDType;
  ir::DType dtype = ir::DType::kF32;
  int64_t flops = 0;     // tiles that a kernel computes in vain included
  Bytes bytes;           // read and written
  int64_t elements = 0;  // that instructions are issued for one by one
  bool draws = false;    // a random number per element
  int64_t channels = 0;  // of a batch norm; 0: no batch norm
  int64_t reduced = 0;   // elements that become one in a reduction
};

OpWork countWork(const ir::Graph& graph, ir::NodeId node);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_TARGETS_OP_WORK_H_
