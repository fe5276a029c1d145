// SPDX-License-Identifier: Apache-2.0
//
// Ops whose result has a size that depends on values: nonzero(), masked_select(), a mask as index,
// repeat_interleave(), bincount(), unique(), one_hot() without classes.
// Where the size is known while tracing, such an op is made of ops of fixed sizes that compute the
// same integers, or copy the same elements, from the tensors that the step has when it runs.
// With values of another size these ops give other numbers, but stay within their tensors: the
// step is traced again beside each run, finds another size, and is refused before its update.
// Not here: where a size is known from (known_values.h).
#ifndef STOWAGE_RUNTIME_CAPTURE_DISPATCH_KNOWN_SIZES_H_
#define STOWAGE_RUNTIME_CAPTURE_DISPATCH_KNOWN_SIZES_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <llvm/ADT/ArrayRef.h>

#include <functional>
#include <optional>

namespace stowage::runtime {

struct OpFacts;

/// What is asked of a tensor's values.
enum class SizeQuestion : uint8_t {
  kCount,     // elements that are not zero
  kSum,       // of numbers that are not negative
  kPastLast,  // the largest plus one, of numbers that are not negative; 0 of none
  kDistinct,  // how many different integers
};

/// Nothing where the values are not known, or are not what the question is about.
using SizeOf =
    std::function<std::optional<int64_t>(const at::Tensor& tensor, SizeQuestion question)>;

/// The answer for values on the CPU.
std::optional<int64_t> answerOf(const at::Tensor& values, SizeQuestion question);

/// Where in the row-major order of `self` the first `count` elements are that are not zero. Where
/// there are fewer, the last one again.
at::Tensor flatPositions(const at::Tensor& self, int64_t count);

/// What an op that is `sizedByValues` returns, made of ops of fixed sizes; nothing where a size is
/// not known.
std::optional<torch::jit::Stack> callWithKnownSize(const OpFacts& op,
                                                   llvm::ArrayRef<c10::IValue> args,
                                                   const SizeOf& sizeOf);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CAPTURE_DISPATCH_KNOWN_SIZES_H_
