// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices with a type of their own for the result, and of small types. All results are
// row-major. The `dtype` overloads, `_scaled_mm_v2` and `_scaled_grouped_mm` exist on CUDA alone
// (Blas.cpp, GroupedBlas.cpp of libtorch 2.11); what they return was read off an H200.
#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

c10::ScalarType typeOr(const c10::IValue& type, c10::ScalarType otherwise) {
  return type.isNone() ? otherwise : type.toScalarType();
}

/// [m, k] x [k, n] -> [m, n]
OutputTensor product(const at::Tensor& a, const at::Tensor& b, c10::ScalarType dtype) {
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2, "found matrices of ", a.dim(), " and ", b.dim(),
              " dimensions, expected 2");
  return fresh({a.size(0), b.size(1)}, dtype);
}

/// [batch, m, k] x [batch, k, n] -> [batch, m, n]
OutputTensor batchProduct(const at::Tensor& a, const at::Tensor& b, c10::ScalarType dtype) {
  TORCH_CHECK(a.dim() == 3 && b.dim() == 3, "found batches of ", a.dim(), " and ", b.dim(),
              " dimensions, expected 3");
  return fresh({a.size(0), a.size(1), b.size(2)}, dtype);
}

/// mm.dtype(self, mat2, type)
Outputs mm(const TracedCall& call) {
  return outputs({product(call.tensor(0), call.tensor(1), call.args[2].toScalarType())});
}
/// addmm.dtype(self, mat1, mat2, type, ...)
Outputs addmm(const TracedCall& call) {
  return outputs({product(call.tensor(1), call.tensor(2), call.args[3].toScalarType())});
}
/// bmm.dtype(self, mat2, type)
Outputs bmm(const TracedCall& call) {
  return outputs({batchProduct(call.tensor(0), call.tensor(1), call.args[2].toScalarType())});
}
/// baddbmm.dtype(self, batch1, batch2, type, ...)
Outputs baddbmm(const TracedCall& call) {
  return outputs({batchProduct(call.tensor(1), call.tensor(2), call.args[3].toScalarType())});
}
/// addbmm(self, batch1, batch2, ...): summed over the batch.
Outputs addbmm(const TracedCall& call) {
  return outputs(
      {fresh({call.tensor(1).size(1), call.tensor(2).size(2)}, call.tensor(0).scalar_type())});
}
/// addbmm_(self, ...)
Outputs inPlace(const TracedCall& call) { return outputs({itself(call.tensor(0))}); }

Outputs intMm(const TracedCall& call) {
  return outputs({product(call.tensor(0), call.tensor(1), c10::kInt)});
}

Outputs scaledProduct(const TracedCall& call, size_t type) {
  const at::Tensor& self = call.tensor(0);
  return outputs({product(self, call.tensor(1), typeOr(call.args[type], self.scalar_type()))});
}
/// _scaled_mm(self, mat2, scale_a, scale_b, bias?, scale_result?, type?, fast)
Outputs scaledMm(const TracedCall& call) { return scaledProduct(call, 6); }
/// _scaled_mm_v2(self, mat2, scales and recipes of a and b, bias?, type?, ...)
Outputs scaledMmV2(const TracedCall& call) { return scaledProduct(call, 9); }

/// Groups are a dimension of the weights, rows of `a` (offsets say which), or pieces of the inner
/// dimension. Rows of the result are padded to 16 bytes on CUDA.
OutputTensor groupedProduct(const TracedCall& call, size_t offsets, c10::ScalarType dtype) {
  const at::Tensor& a = call.tensor(0);
  const at::Tensor& b = call.tensor(1);
  const int64_t columns = b.size(-1);
  std::vector<int64_t> sizes = {a.size(-2), columns};
  if (a.dim() == 3 && b.dim() == 3) sizes.insert(sizes.begin(), a.size(0));
  if (a.dim() == 2 && b.dim() == 2) sizes.insert(sizes.begin(), call.tensor(offsets).size(0));
  if (!call.device.is_cuda()) return fresh(sizes, dtype);
  const auto perLine = static_cast<int64_t>(16 / c10::elementSize(dtype));
  const int64_t row = (columns + perLine - 1) / perLine * perLine;
  std::vector<int64_t> strides = {row, 1};
  if (sizes.size() == 3) strides.insert(strides.begin(), sizes[1] * row);
  return freshStrided(sizes, strides, dtype);
}
/// _scaled_grouped_mm(self, mat2, scale_a, scale_b, offs?, bias?, scale_result?, type?, fast)
Outputs scaledGroupedMm(const TracedCall& call) {
  return outputs({groupedProduct(call, 4, typeOr(call.args[7], c10::kBFloat16))});
}
/// _grouped_mm(self, mat2, offs?, bias?, type?)
Outputs groupedMm(const TracedCall& call) {
  return outputs({groupedProduct(call, 2, typeOr(call.args[4], call.tensor(0).scalar_type()))});
}

/// _weight_int8pack_mm(self [m, k], mat2 [n, k], scales)
Outputs int8PackMm(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  return outputs({fresh({self.size(0), call.tensor(1).size(0)}, self.scalar_type())});
}
/// _weight_int4pack_mm(self, mat2 [n / 8, ...], ...), CUDA alone.
Outputs int4PackMm(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  return outputs({fresh({self.size(0), call.tensor(1).size(0) * 8}, self.scalar_type())});
}

constexpr NamedRule kRules[] = {
    {"aten._grouped_mm.default", groupedMm},
    {"aten._int_mm.default", intMm},
    {"aten._scaled_grouped_mm.default", scaledGroupedMm},
    {"aten._scaled_mm.default", scaledMm},
    {"aten._scaled_mm_v2.default", scaledMmV2},
    {"aten._weight_int4pack_mm.default", int4PackMm},
    {"aten._weight_int8pack_mm.default", int8PackMm},
    {"aten.addbmm.default", addbmm},
    {"aten.addbmm_.default", inPlace},
    {"aten.addmm.dtype", addmm},
    {"aten.baddbmm.dtype", baddbmm},
    {"aten.bmm.dtype", bmm},
    {"aten.mm.dtype", mm},
};

}  // namespace

llvm::ArrayRef<NamedRule> matrixRules() { return kRules; }

}  // namespace stowage::runtime
