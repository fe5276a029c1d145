// SPDX-License-Identifier: Apache-2.0
//
// Random first values and inputs for trials of time and memory, drawn in seconds for large models.
// A value depends on the seed and on its place alone: any number of threads draws the same bits,
// and torch's generators are left alone. Not for training: construction of models draws theirs.
#ifndef STOWAGE_TOOLS_MODELS_RANDOM_VALUES_H_
#define STOWAGE_TOOLS_MODELS_RANDOM_VALUES_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>

namespace stowage::tools {

/// Near a normal distribution: sums of four uniform numbers, with mean 0, standard deviation
/// `spread` and no value beyond 3.5 times that. `dtype` is floating point or complex.
at::Tensor drawNormal(c10::IntArrayRef sizes, c10::ScalarType dtype, uint64_t seed,
                      double spread = 1);

/// Integers from 0 on and below `bound`, which is at least 1.
at::Tensor drawIntegers(c10::IntArrayRef sizes, c10::ScalarType dtype, uint64_t seed,
                        int64_t bound);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_MODELS_RANDOM_VALUES_H_
