// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/dispatch/known_sizes.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/ops/_index_put_impl.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <llvm/ADT/StringRef.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/capture/ops/op_facts.h"

namespace stowage::runtime {
namespace {

using Results = std::optional<torch::jit::Stack>;
using Indices = std::vector<std::optional<at::Tensor>>;

at::TensorOptions longsOn(const at::Tensor& tensor) { return tensor.options().dtype(c10::kLong); }

bool isMask(const std::optional<at::Tensor>& index) {
  return index && index->defined() &&
         (index->scalar_type() == c10::kBool || index->scalar_type() == c10::kByte);
}

/// `ends` are running sums of how often each place occurs -> the first `count` occurrences, in
/// order. Where there are fewer, the last one again.
at::Tensor placesOf(const at::Tensor& ends, int64_t count) {
  if (count == 0 || ends.numel() == 0) return at::zeros({count}, ends.options());
  const at::Tensor last = ends.narrow(0, ends.numel() - 1, 1).sub(1);
  const at::Tensor numbers = at::minimum(at::arange(count, ends.options()), last);
  return at::searchsorted(ends, numbers, /*out_int32=*/false, /*right=*/true)
      .clamp_max(ends.numel() - 1);
}

}  // namespace

at::Tensor flatPositions(const at::Tensor& self, int64_t count) {
  const at::Tensor flat = self.reshape({-1});
  return placesOf(at::cumsum(flat.scalar_type() == c10::kBool ? flat : flat.ne(0), 0, c10::kLong),
                  count);
}

namespace {

/// nonzero(self), with libtorch's strides: one dimension after the other.
at::Tensor nonzeroOf(const at::Tensor& self, int64_t count) {
  if (self.dim() == 0) return at::zeros({count, 0}, longsOn(self));
  const at::Tensor flat = flatPositions(self, count);
  std::vector<at::Tensor> positions;
  int64_t inner = self.numel();
  for (int64_t dim = 0; dim < self.dim(); ++dim) {
    const int64_t size = self.size(dim);
    inner = size == 0 ? 0 : inner / size;
    const bool isFirst = dim == 0, isLast = dim + 1 == self.dim();
    at::Tensor position = isLast || inner == 0 ? flat : flat.div(inner, "trunc");
    positions.push_back(isFirst || size == 0 ? position : position.remainder(size));
  }
  return at::stack(positions, 0).t();
}

/// nonzero(self)
Results nonzero(llvm::ArrayRef<c10::IValue> args, const SizeOf& sizeOf) {
  const at::Tensor& self = args[0].toTensor();
  const std::optional<int64_t> count = sizeOf(self, SizeQuestion::kCount);
  if (!count) return std::nullopt;
  return torch::jit::Stack{nonzeroOf(self, *count)};
}

/// Masks become positions, one for each of their dimensions, as libtorch's kernels do first.
std::optional<Indices> withoutMasks(const Indices& indices, const SizeOf& sizeOf) {
  Indices made;
  for (const std::optional<at::Tensor>& index : indices) {
    if (!isMask(index)) {
      made.push_back(index);
      continue;
    }
    const std::optional<int64_t> count =
        index->dim() == 0 ? std::nullopt : sizeOf(*index, SizeQuestion::kCount);
    if (!count) return std::nullopt;
    const at::Tensor positions = nonzeroOf(*index, *count);
    for (int64_t dim = 0; dim < index->dim(); ++dim) made.emplace_back(positions.select(1, dim));
  }
  return made;
}

/// Do the masks among the indices fit the dimensions that they are for?
bool masksFit(const at::Tensor& self, const Indices& indices) {
  int64_t dim = 0;
  for (const std::optional<at::Tensor>& index : indices) {
    const int64_t dims = isMask(index) ? index->dim() : 1;
    if (dim + dims > self.dim()) return false;
    for (int64_t i = 0; isMask(index) && i < dims; ++i) {
      if (index->size(i) != self.size(dim + i)) return false;
    }
    dim += dims;
  }
  return true;
}

c10::List<std::optional<at::Tensor>> listOf(const Indices& indices) {
  c10::List<std::optional<at::Tensor>> list;
  for (const std::optional<at::Tensor>& index : indices) list.push_back(index);
  return list;
}

/// The indices of a call without masks; nothing where it has none, or their counts are not known.
std::optional<Indices> knownIndices(const at::Tensor& self, const c10::IValue& argument,
                                    const SizeOf& sizeOf) {
  const Indices indices = argument.toOptionalTensorVector();
  bool anyMask = false;
  for (const std::optional<at::Tensor>& index : indices) anyMask = anyMask || isMask(index);
  if (!anyMask || !masksFit(self, indices)) return std::nullopt;
  return withoutMasks(indices, sizeOf);
}

/// index(self, indices)
Results index(llvm::ArrayRef<c10::IValue> args, const SizeOf& sizeOf) {
  const at::Tensor& self = args[0].toTensor();
  const std::optional<Indices> indices = knownIndices(self, args[1], sizeOf);
  if (!indices) return std::nullopt;
  return torch::jit::Stack{at::index(self, listOf(*indices))};
}

/// Are there values for each chosen element? Else a mask may choose any number of them.
bool goesByCount(const at::Tensor& self, const Indices& indices, const at::Tensor& values) {
  int64_t after = self.dim();
  for (const std::optional<at::Tensor>& index : indices) after -= isMask(index) ? index->dim() : 1;
  return values.dim() > after && values.size(values.dim() - 1 - after) != 1;
}

/// The indices of an assignment by masks whose counts matter.
std::optional<Indices> indicesOfPut(llvm::ArrayRef<c10::IValue> args, const SizeOf& sizeOf) {
  const at::Tensor& self = args[0].toTensor();
  if (!goesByCount(self, args[1].toOptionalTensorVector(), args[2].toTensor())) return std::nullopt;
  return knownIndices(self, args[1], sizeOf);
}

/// index_put(self, indices, values, accumulate)
Results indexPut(llvm::ArrayRef<c10::IValue> args, const SizeOf& sizeOf) {
  const std::optional<Indices> indices = indicesOfPut(args, sizeOf);
  if (!indices) return std::nullopt;
  return torch::jit::Stack{
      at::index_put(args[0].toTensor(), listOf(*indices), args[2].toTensor(), args[3].toBool())};
}

/// index_put_(self, indices, values, accumulate)
Results indexPutInPlace(llvm::ArrayRef<c10::IValue> args, const SizeOf& sizeOf) {
  const std::optional<Indices> indices = indicesOfPut(args, sizeOf);
  if (!indices) return std::nullopt;
  at::Tensor self = args[0].toTensor();
  return torch::jit::Stack{
      at::index_put_(self, listOf(*indices), args[2].toTensor(), args[3].toBool())};
}

/// _index_put_impl_(self, indices, values, accumulate, unsafe), as index()'s backward calls it.
Results indexPutImpl(llvm::ArrayRef<c10::IValue> args, const SizeOf& sizeOf) {
  const std::optional<Indices> indices = indicesOfPut(args, sizeOf);
  if (!indices) return std::nullopt;
  at::Tensor self = args[0].toTensor();
  return torch::jit::Stack{at::_index_put_impl_(self, listOf(*indices), args[2].toTensor(),
                                                args[3].toBool(), args[4].toBool())};
}

/// masked_select(self, mask)
Results maskedSelect(llvm::ArrayRef<c10::IValue> args, const SizeOf& sizeOf) {
  const at::Tensor &self = args[0].toTensor(), &mask = args[1].toTensor();
  if (mask.scalar_type() != c10::kBool) return std::nullopt;
  const std::vector<int64_t> sizes = at::infer_size(self.sizes(), mask.sizes());
  const at::Tensor chosen = sizes.empty() ? mask.reshape({1}) : mask.expand(sizes);
  const std::optional<int64_t> count = sizeOf(chosen, SizeQuestion::kCount);
  if (!count) return std::nullopt;
  const at::Tensor from = sizes.empty() ? self.reshape({1}) : self.expand(sizes);
  const std::optional<Indices> indices =
      withoutMasks({chosen}, [&](const at::Tensor&, SizeQuestion) { return count; });
  return torch::jit::Stack{at::index(from, listOf(*indices))};
}

/// repeat_interleave(repeats, output_size?)
Results repeatInterleave(llvm::ArrayRef<c10::IValue> args, const SizeOf& sizeOf) {
  const at::Tensor& repeats = args[0].toTensor();
  if (!args[1].isNone() || repeats.dim() != 1) return std::nullopt;
  const std::optional<int64_t> total = sizeOf(repeats, SizeQuestion::kSum);
  if (!total) return std::nullopt;
  if (repeats.numel() == 0) return torch::jit::Stack{at::zeros({0}, repeats.options())};
  const at::Tensor ends = at::cumsum(repeats, 0, c10::kLong);
  return torch::jit::Stack{at::searchsorted(ends, at::arange(*total, longsOn(repeats)),
                                            /*out_int32=*/false,
                                            /*right=*/true)
                               .clamp_max(repeats.numel() - 1)
                               .to(repeats.scalar_type())};
}

/// bincount(self, weights?, minlength): without weights, whose sums would depend on their order.
Results bincount(llvm::ArrayRef<c10::IValue> args, const SizeOf& sizeOf) {
  const at::Tensor& self = args[0].toTensor();
  const bool hasWeights = args[1].isTensor() && args[1].toTensor().defined();
  if (hasWeights || self.dim() != 1 || args[2].toInt() < 0) return std::nullopt;
  const std::optional<int64_t> pastLast = sizeOf(self, SizeQuestion::kPastLast);
  if (!pastLast) return std::nullopt;
  const int64_t bins = std::max(*pastLast, args[2].toInt());
  const at::Tensor counts = at::zeros({bins}, longsOn(self));
  if (self.numel() == 0) return torch::jit::Stack{counts};
  const at::Tensor places = self.to(c10::kLong).clamp(0, bins - 1);
  return torch::jit::Stack{counts.scatter_add(0, places, at::ones_like(places))};
}

/// _unique2(self, sorted, return_inverse, return_counts), in order of the values.
Results unique(llvm::ArrayRef<c10::IValue> args, const SizeOf& sizeOf) {
  const at::Tensor& self = args[0].toTensor();
  if (!args[1].toBool() || self.numel() == 0) return std::nullopt;
  const std::optional<int64_t> distinct = sizeOf(self, SizeQuestion::kDistinct);
  if (!distinct) return std::nullopt;
  const auto [sorted, from] = at::sort(self.reshape({-1}));
  const int64_t length = sorted.numel();
  const at::Tensor isFirst =
      at::cat({at::ones({1}, sorted.options().dtype(c10::kBool)),
               sorted.narrow(0, 1, length - 1).ne(sorted.narrow(0, 0, length - 1))});
  const at::Tensor firsts = flatPositions(isFirst, *distinct);
  at::Tensor inverse = at::zeros({0}, longsOn(self)), counts = inverse;
  if (args[2].toBool() || args[3].toBool()) {
    const at::Tensor rank = at::cumsum(isFirst, 0, c10::kLong).sub(1).clamp_max(*distinct - 1);
    inverse = at::zeros({length}, longsOn(self)).scatter(0, from, rank).view(self.sizes());
  }
  if (args[3].toBool()) {
    const at::Tensor end = at::full({1}, length, longsOn(self));
    counts = at::cat({firsts.narrow(0, 1, *distinct - 1), end}).sub(firsts);
  }
  return torch::jit::Stack{sorted.index_select(0, firsts), inverse, counts};
}

/// one_hot(self, num_classes): below 1, as many as the values need.
Results oneHot(llvm::ArrayRef<c10::IValue> args, const SizeOf& sizeOf) {
  const at::Tensor& self = args[0].toTensor();
  if (args[1].toInt() >= 1 || self.scalar_type() != c10::kLong || self.numel() == 0) {
    return std::nullopt;
  }
  const std::optional<int64_t> classes = sizeOf(self, SizeQuestion::kPastLast);
  if (!classes) return std::nullopt;
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.push_back(*classes);
  const at::Tensor places = self.unsqueeze(-1).clamp(0, *classes - 1);
  return torch::jit::Stack{at::zeros(sizes, self.options()).scatter(-1, places, 1)};
}

struct Form {
  const char* op;
  Results (*make)(llvm::ArrayRef<c10::IValue>, const SizeOf&);
};

constexpr Form kForms[] = {
    {"aten._index_put_impl_.default", indexPutImpl},
    {"aten._unique2.default", unique},
    {"aten.bincount.default", bincount},
    {"aten.index.Tensor", index},
    {"aten.index_put.default", indexPut},
    {"aten.index_put_.default", indexPutInPlace},
    {"aten.masked_select.default", maskedSelect},
    {"aten.nonzero.default", nonzero},
    {"aten.one_hot.default", oneHot},
    {"aten.repeat_interleave.Tensor", repeatInterleave},
};

const Form* findForm(llvm::StringRef op) {
  for (const Form& form : kForms) {
    if (op == form.op) return &form;
  }
  return nullptr;
}

}  // namespace

std::optional<int64_t> answerOf(const at::Tensor& values, SizeQuestion question) {
  if (question == SizeQuestion::kCount) return values.count_nonzero().item<int64_t>();
  if (!c10::isIntegralType(values.scalar_type(), /*includeBool=*/false)) return std::nullopt;
  if (question == SizeQuestion::kDistinct) return std::get<0>(at::_unique2(values)).numel();
  if (values.numel() == 0) return 0;
  const at::Tensor numbers = values.to(c10::kLong);
  if (numbers.min().item<int64_t>() < 0) return std::nullopt;
  if (question == SizeQuestion::kSum) return numbers.sum().item<int64_t>();
  return numbers.max().item<int64_t>() + 1;
}

Results callWithKnownSize(const OpFacts& op, llvm::ArrayRef<c10::IValue> args,
                          const SizeOf& sizeOf) {
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  const c10::impl::ExcludeDispatchKeyGuard noAutocast(c10::autocast_dispatch_keyset);
  const Form* form = findForm(op.name);
  return form == nullptr ? std::nullopt : form->make(args, sizeOf);
}

}  // namespace stowage::runtime
