// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_ops.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <torch/library.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace stowage::tests {

namespace {

at::Tensor duplicate(const at::Tensor& x) {
  at::Tensor result = at::empty_like(x);
  std::memcpy(result.mutable_data_ptr(), x.const_data_ptr(), x.nbytes());
  return result;
}

at::Tensor hoard(const at::Tensor& x, int64_t bytes) {
  void* volatile block = std::malloc(static_cast<size_t>(bytes));
  at::Tensor result = duplicate(x);
  std::free(block);
  return result;
}

at::Tensor scratch(const at::Tensor& x, int64_t bytes) {
  const c10::DataPtr block = c10::GetCPUAllocator()->allocate(static_cast<size_t>(bytes));
  std::memset(block.get(), 0, static_cast<size_t>(bytes));
  return duplicate(x);
}

at::Tensor keep(const at::Tensor& x, int64_t bytes) {
  static auto* kept = new std::vector<c10::DataPtr>();
  at::Tensor result = duplicate(x);
  kept->push_back(c10::GetCPUAllocator()->allocate(static_cast<size_t>(bytes)));
  return result;
}

at::Tensor elsewhere(const at::Tensor& x) {
  const at::Tensor first = at::empty_like(x);
  return duplicate(x);
}

at::Tensor fail(const at::Tensor& /*x*/) { TORCH_CHECK(false, "this op always fails"); }

TORCH_LIBRARY(stowage_test, library) {
  library.def("hoard(Tensor x, int bytes) -> Tensor", &hoard);
  library.def("scratch(Tensor x, int bytes) -> Tensor", &scratch);
  library.def("keep(Tensor x, int bytes) -> Tensor", &keep);
  library.def("elsewhere(Tensor x) -> Tensor", &elsewhere);
  library.def("fail(Tensor x) -> Tensor", &fail);
}

}  // namespace

void registerTestOps() {}

}  // namespace stowage::tests
