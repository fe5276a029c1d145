// SPDX-License-Identifier: Apache-2.0
//
// stowage::add_parts on a GPU (runtime/collectives): one kernel that reads every part once, where
// ops of libtorch would write and read a wider sum for each. libtorch compiles it at its first
// launch and keeps it as it keeps others that it compiles.
#include <ATen/core/Tensor.h>
#include <ATen/cuda/jiterator.h>
#include <torch/library.h>

#include <string>

#include "runtime/collectives/added_parts.h"

namespace stowage::runtime {

namespace {

/// As many as a kernel that libtorch compiles reads.
constexpr int64_t kMostParts = 8;

/// "template <typename T> T add_2_parts(T p0, T p1, float scale) { ... }". A mean is the sum times
/// the reciprocal, as libtorch's division by a number is on a GPU.
std::string kernelText(const std::string& name, const char* wide, int64_t parts) {
  std::string arguments;
  std::string sum = std::string(wide) + " sum = static_cast<" + wide + ">(p0);";
  for (int64_t i = 0; i < parts; ++i) {
    const std::string part = "p" + std::to_string(i);
    arguments += "T " + part + ", ";
    if (i > 0) sum += std::string(" sum += static_cast<") + wide + ">(" + part + ");";
  }
  return "template <typename T> T " + name + "(" + arguments + wide + " scale) { " + sum +
         " return static_cast<T>(sum * scale); }";
}

at::Tensor addPartsOnGpu(const at::Tensor& received, int64_t ranks, bool mean) {
  if (ranks > kMostParts || received.numel() == 0) return addPartsByOps(received, ranks, mean);
  checkAddedParts(received, ranks);
  const int64_t rows = received.size(0) / ranks;
  c10::SmallVector<at::Tensor> parts;
  for (int64_t i = 0; i < ranks; ++i) parts.push_back(received.narrow(0, i * rows, rows));
  const bool isDouble = received.scalar_type() == at::kDouble;
  const std::string name = "add_" + std::to_string(ranks) + "_parts";
  const double scale = isDouble ? 1.0 / static_cast<double>(ranks)
                                : static_cast<double>(1.0F / static_cast<float>(ranks));
  return at::cuda::CompileAndLaunchKernel(kernelText(name, isDouble ? "double" : "float", ranks),
                                          name, 1, parts, {at::Scalar(mean ? scale : 1.0)}, false)
      .front();
}

}  // namespace

TORCH_LIBRARY_IMPL(stowage, CUDA, library) { library.impl("add_parts", addPartsOnGpu); }

}  // namespace stowage::runtime
