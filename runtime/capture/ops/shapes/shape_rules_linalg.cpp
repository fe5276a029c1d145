// SPDX-License-Identifier: Apache-2.0
//
// Linear algebra, distances between rows, weight normalisation. Checked against the real ops on the
// CPU (BatchLinearAlgebra.cpp, LinearAlgebra.cpp, Distance.cpp, WeightNorm.cpp of libtorch 2.11).
// Results on CUDA were not compared: no rules for it.
#include <ATen/ExpandUtils.h>

#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

/// Matrices with their columns one after the other, as LAPACK wants them.
OutputTensor columnMajor(std::vector<int64_t> sizes, c10::ScalarType dtype) {
  std::vector<int64_t> turned = sizes;
  std::swap(turned.end()[-1], turned.end()[-2]);
  OutputTensor made = fresh(turned, dtype);
  auto& shape = made.shape;
  std::swap(shape.sizes.end()[-1], shape.sizes.end()[-2]);
  std::swap(shape.strides.end()[-1], shape.strides.end()[-2]);
  return made;
}

/// linalg_solve_triangular(A, B, upper, left, unitriangular) -> B's size, batches broadcast
Outputs solveTriangular(const TracedCall& call) {
  const at::Tensor& a = call.tensor(0);
  const at::Tensor& b = call.tensor(1);
  TORCH_CHECK(a.dim() >= 2 && b.dim() >= 2, "found ", a.dim(), " and ", b.dim(),
              " dimensions, expected at least 2");
  std::vector<int64_t> sizes = at::infer_size(a.sizes().slice(0, static_cast<size_t>(a.dim() - 2)),
                                              b.sizes().slice(0, static_cast<size_t>(b.dim() - 2)));
  sizes.push_back(b.size(-2));
  sizes.push_back(b.size(-1));
  return outputs({columnMajor(sizes, b.scalar_type())});
}

/// linalg_matrix_exp(self): a matrix of one number is exp's.
Outputs matrixExp(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  TORCH_CHECK(self.dim() >= 2, "found ", self.dim(), " dimensions, expected at least 2");
  return outputs({self.size(-1) <= 1 ? freshLike(self) : freshContiguous(self)});
}

/// linalg_householder_product(input, tau)
Outputs householderProduct(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  return outputs({columnMajor(self.sizes().vec(), self.scalar_type())});
}

/// _pdist_forward(self [rows, columns], p): one per pair of rows.
Outputs pairDistances(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  const int64_t rows = self.size(0);
  return outputs({fresh({rows < 2 ? 0 : rows * (rows - 1) / 2}, self.scalar_type())});
}
/// _pdist_backward(grad, self, p, pdist)
Outputs pairDistancesBackward(const TracedCall& call) {
  return outputs({freshContiguous(call.tensor(1))});
}

/// _cdist_forward(x1 [..., m, k], x2 [..., n, k], p, compute_mode) -> [..., m, n]
Outputs distances(const TracedCall& call) {
  const at::Tensor& a = call.tensor(0);
  const at::Tensor& b = call.tensor(1);
  std::vector<int64_t> sizes = at::infer_size(a.sizes().slice(0, static_cast<size_t>(a.dim() - 2)),
                                              b.sizes().slice(0, static_cast<size_t>(b.dim() - 2)));
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-2));
  return outputs({fresh(sizes, a.scalar_type())});
}
/// _cdist_backward(grad, x1, x2, p, cdist) -> x1's size, batches broadcast
Outputs distancesBackward(const TracedCall& call) {
  const at::Tensor& a = call.tensor(1);
  const at::Tensor& b = call.tensor(2);
  std::vector<int64_t> sizes = at::infer_size(a.sizes().slice(0, static_cast<size_t>(a.dim() - 2)),
                                              b.sizes().slice(0, static_cast<size_t>(b.dim() - 2)));
  sizes.push_back(a.size(-2));
  sizes.push_back(a.size(-1));
  return outputs({fresh(sizes, a.scalar_type())});
}

/// _weight_norm_interface(v, g, dim) -> weight, norms (of small types in f32)
Outputs weightNorm(const TracedCall& call) {
  const at::Tensor& v = call.tensor(0);
  const at::Tensor& g = call.tensor(1);
  const bool isSmall =
      g.scalar_type() == c10::kBFloat16 || (g.scalar_type() == c10::kHalf && call.device.is_cuda());
  const c10::ScalarType type = isSmall ? c10::kFloat : g.scalar_type();
  return outputs(
      {freshContiguous(v), freshStrided({g.sizes().data(), g.sizes().size()},
                                        {g.strides().data(), g.strides().size()}, type)});
}
/// _weight_norm_interface_backward(grad, v, g, norms, dim) -> gradients of v and g
Outputs weightNormBackward(const TracedCall& call) {
  return outputs({freshContiguous(call.tensor(1)), freshContiguous(call.tensor(2))});
}

constexpr bool kOnlyForCpu = true;
constexpr NamedRule kRules[] = {
    {"aten._cdist_backward.default", distancesBackward, kOnlyForCpu},
    {"aten._cdist_forward.default", distances, kOnlyForCpu},
    {"aten._pdist_backward.default", pairDistancesBackward, kOnlyForCpu},
    {"aten._pdist_forward.default", pairDistances, kOnlyForCpu},
    {"aten._weight_norm_interface.default", weightNorm},
    {"aten._weight_norm_interface_backward.default", weightNormBackward},
    {"aten.linalg_householder_product.default", householderProduct, kOnlyForCpu},
    {"aten.linalg_matrix_exp.default", matrixExp, kOnlyForCpu},
    {"aten.linalg_solve_triangular.default", solveTriangular, kOnlyForCpu},
};

}  // namespace

llvm::ArrayRef<NamedRule> linalgRules() { return kRules; }

}  // namespace stowage::runtime
