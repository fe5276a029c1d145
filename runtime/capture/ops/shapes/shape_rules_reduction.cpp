// SPDX-License-Identifier: Apache-2.0
//
// Reductions, choices among elements and scans. All results are row-major, whatever the operand's
// layout, on the CPU and on CUDA (both run and compared on an H200 with libtorch 2.11).
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>

#include "runtime/capture/ops/shape_rules.h"

namespace stowage::runtime {
namespace {

std::vector<int64_t> dimsAt(const TracedCall& call, size_t argument) {
  return call.args[argument].isNone() ? std::vector<int64_t>() : call.args[argument].toIntVector();
}

/// Sums and products of integers are long, unless a type is asked for.
c10::ScalarType sumType(const TracedCall& call, size_t argument) {
  if (!call.args[argument].isNone()) return call.args[argument].toScalarType();
  const c10::ScalarType type = call.tensor(0).scalar_type();
  return c10::isIntegralType(type, /*includeBool=*/true) ? c10::kLong : type;
}

Outputs scalarLikeSelf(const TracedCall& call) {
  return outputs({fresh({}, call.tensor(0).scalar_type())});
}

/// prod(self, dtype?)
Outputs product(const TracedCall& call) { return outputs({fresh({}, sumType(call, 1))}); }

Outputs trace(const TracedCall& call) {
  const c10::ScalarType type = call.tensor(0).scalar_type();
  return outputs({fresh({}, c10::isIntegralType(type, /*includeBool=*/true) ? c10::kLong : type)});
}

/// var.correction(self, dims?, correction?, keepdim)
Outputs deviation(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  return outputs(
      {reduced(self, dimsAt(call, 1), call.boolean(3), c10::toRealValueType(self.scalar_type()))});
}

Outputs deviationAndMean(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  return outputs({deviation(call)[0].tensors[0],
                  reduced(self, dimsAt(call, 1), call.boolean(3), self.scalar_type())});
}

/// logsumexp(self, dims, keepdim)
Outputs logSumExp(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  const bool isIntegral = c10::isIntegralType(self.scalar_type(), /*includeBool=*/true);
  return outputs(
      {reduced(self, dimsAt(call, 1), call.boolean(2),
               isIntegral ? c10::get_default_dtype_as_scalartype() : self.scalar_type())});
}

/// nansum(self, dims?, keepdim, dtype?)
Outputs nanSum(const TracedCall& call) {
  return outputs({reduced(call.tensor(0), dimsAt(call, 1), call.boolean(2), sumType(call, 3))});
}

/// count_nonzero.dim_IntList(self, dims)
Outputs count(const TracedCall& call) {
  return outputs({reduced(call.tensor(0), dimsAt(call, 1), false, c10::kLong)});
}

/// One value along `dim` and where it is.
Outputs chosenAlong(const TracedCall& call, size_t dim) {
  const at::Tensor& self = call.tensor(0);
  const int64_t dims[] = {call.integer(dim)};
  const bool keep = call.boolean(dim + 1);
  return outputs(
      {reduced(self, dims, keep, self.scalar_type()), reduced(self, dims, keep, c10::kLong)});
}
/// mode(self, dim, keepdim), median.dim(self, dim, keepdim)
Outputs chosen(const TracedCall& call) { return chosenAlong(call, 1); }
/// kthvalue(self, k, dim, keepdim)
Outputs kthValue(const TracedCall& call) { return chosenAlong(call, 2); }

/// _aminmax(self)
Outputs bothEnds(const TracedCall& call) {
  const OutputTensor one = fresh({}, call.tensor(0).scalar_type());
  return outputs({one, one});
}
/// _aminmax.dim(self, dim, keepdim)
Outputs bothEndsAlong(const TracedCall& call) {
  const int64_t dims[] = {call.integer(1)};
  const OutputTensor one =
      reduced(call.tensor(0), dims, call.boolean(2), call.tensor(0).scalar_type());
  return outputs({one, one});
}

Outputs scan(const TracedCall& call) { return outputs({freshContiguous(call.tensor(0))}); }
/// cummax(self, dim), cummin(self, dim)
Outputs scanAndWhere(const TracedCall& call) {
  const at::Tensor& self = call.tensor(0);
  return outputs({freshContiguous(self), fresh(self.sizes().vec(), c10::kLong)});
}

/// histc(self, bins, min, max)
Outputs histogram(const TracedCall& call) {
  return outputs({fresh({call.integer(1)}, call.tensor(0).scalar_type())});
}

constexpr NamedRule kRules[] = {
    {"aten._aminmax.default", bothEnds},
    {"aten._aminmax.dim", bothEndsAlong},
    {"aten._logcumsumexp.default", scan},
    {"aten.count_nonzero.dim_IntList", count},
    {"aten.cummax.default", scanAndWhere},
    {"aten.cummin.default", scanAndWhere},
    {"aten.dot.default", scalarLikeSelf},
    {"aten.histc.default", histogram},
    {"aten.kthvalue.default", kthValue},
    {"aten.logcumsumexp.default", scan},
    {"aten.logsumexp.default", logSumExp},
    {"aten.max.default", scalarLikeSelf},
    {"aten.median.default", scalarLikeSelf},
    {"aten.median.dim", chosen},
    {"aten.min.default", scalarLikeSelf},
    {"aten.mode.default", chosen},
    {"aten.nanmedian.default", scalarLikeSelf},
    {"aten.nanmedian.dim", chosen},
    {"aten.nansum.default", nanSum},
    {"aten.prod.default", product},
    {"aten.std.correction", deviation},
    {"aten.std_mean.correction", deviationAndMean},
    {"aten.trace.default", trace},
    {"aten.var.correction", deviation},
    {"aten.var_mean.correction", deviationAndMean},
    {"aten.vdot.default", scalarLikeSelf},
};

}  // namespace

llvm::ArrayRef<NamedRule> reductionRules() { return kRules; }

}  // namespace stowage::runtime
