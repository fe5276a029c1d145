// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/collective_ops.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <cstring>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "runtime/collectives/added_parts.h"
#include "runtime/collectives/tensor_ranks.h"

namespace stowage::runtime {

namespace {

thread_local Communicator* ranksOfThread = nullptr;
thread_local bool areRanksAlike = false;
thread_local TensorRanks* tensorRanksOfThread = nullptr;

llvm::ArrayRef<uint8_t> bytesOf(const at::Tensor& tensor) {
  return {static_cast<const uint8_t*>(tensor.const_data_ptr()), tensor.nbytes()};
}

llvm::MutableArrayRef<uint8_t> writableBytesOf(const at::Tensor& tensor) {
  return {static_cast<uint8_t*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

void checkOperand(const char* op, const at::Tensor& tensor, int64_t ranks) {
  TORCH_CHECK(ranks >= 1 && ranks <= ir::kMostRanks, op, ": found ", ranks,
              " ranks, expected 1 to ", ir::kMostRanks);
  TORCH_CHECK(tensor.dim() >= 1 && tensor.is_contiguous(), op, ": found a tensor of sizes ",
              tensor.sizes(), " and strides ", tensor.strides(),
              ", expected a contiguous one with a dimension at least");
}

Communicator& findRanks(const char* op, int64_t ranks) {
  TORCH_CHECK(ranksOfThread != nullptr, op, ": this process is no rank, expected one of ", ranks,
              ": start it with torchrun");
  TORCH_CHECK(ranksOfThread->count() == ranks, op, ": found ", ranksOfThread->count(),
              " ranks here, expected ", ranks);
  return *ranksOfThread;
}

void throwIfFailed(ir::Error error) {
  const bool hasFailed = static_cast<bool>(error);
  const std::string text = hasFailed ? ir::describe(std::move(error)) : "";
  TORCH_CHECK(!hasFailed, text);
}

/// `count` times the same bytes.
void repeatBytes(llvm::ArrayRef<uint8_t> bytes, int64_t count, uint8_t* to) {
  if (bytes.empty()) return;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * bytes.size(), bytes.data(), bytes.size());
  }
}

at::Tensor makeGathered(const at::Tensor& own, int64_t ranks) {
  checkOperand("all_gather", own, ranks);
  std::vector<int64_t> sizes = own.sizes().vec();
  sizes.front() *= ranks;
  return at::empty(sizes, own.options());
}

/// Parts of all ranks, of the same shape.
void checkParts(const char* op, const at::Tensor& parts, int64_t ranks) {
  checkOperand(op, parts, ranks);
  TORCH_CHECK(parts.size(0) % ranks == 0, op, ": found ", parts.size(0),
              " rows, expected a multiple of the ", ranks, " ranks");
}

at::Tensor makeReceived(const at::Tensor& parts, int64_t ranks) {
  checkParts("all_to_all", parts, ranks);
  return at::empty_like(parts);
}

at::Tensor makeAdded(const at::Tensor& received, int64_t ranks, bool /*mean*/) {
  checkAddedParts(received, ranks);
  std::vector<int64_t> sizes = received.sizes().vec();
  sizes.front() /= ranks;
  return at::empty(sizes, received.options());
}

at::Tensor allGather(const at::Tensor& own, int64_t ranks) {
  at::Tensor all = makeGathered(own, ranks);
  if (areRanksAlike) {
    repeatBytes(bytesOf(own), ranks, writableBytesOf(all).data());
  } else {
    throwIfFailed(findRanks("all_gather", ranks).allGather(bytesOf(own), writableBytesOf(all)));
  }
  return all;
}

at::Tensor allToAll(const at::Tensor& parts, int64_t ranks) {
  at::Tensor received = makeReceived(parts, ranks);
  if (areRanksAlike) {
    const llvm::ArrayRef<uint8_t> all = bytesOf(parts);
    repeatBytes(all.take_front(all.size() / static_cast<size_t>(ranks)), ranks,
                writableBytesOf(received).data());
  } else {
    throwIfFailed(
        findRanks("all_to_all", ranks).allToAll(bytesOf(parts), writableBytesOf(received)));
  }
  return received;
}

// --- on a GPU ---

TensorRanks& findTensorRanks(const char* op, int64_t ranks) {
  TORCH_CHECK(tensorRanksOfThread != nullptr, op, ": this process is no rank with a GPU");
  TORCH_CHECK(tensorRanksOfThread->count() == ranks, op, ": found ", tensorRanksOfThread->count(),
              " ranks here, expected ", ranks);
  return *tensorRanksOfThread;
}

/// `ranks` rows of what this rank has for rank 0.
void repeatRows(const at::Tensor& rows, int64_t ranks, const at::Tensor& to) {
  const int64_t each = to.numel() / ranks;
  to.view({ranks, each}).copy_(rows.view(-1).narrow(0, 0, each).view({1, each}));
}

at::Tensor allGatherOnGpu(const at::Tensor& own, int64_t ranks) {
  at::Tensor all = makeGathered(own, ranks);
  if (areRanksAlike) {
    repeatRows(own, ranks, all);
  } else {
    throwIfFailed(findTensorRanks("all_gather", ranks).allGather(own, all));
  }
  return all;
}

at::Tensor allToAllOnGpu(const at::Tensor& parts, int64_t ranks) {
  at::Tensor received = makeReceived(parts, ranks);
  if (areRanksAlike) {
    repeatRows(parts, ranks, received);
  } else {
    throwIfFailed(findTensorRanks("all_to_all", ranks).allToAll(parts, received));
  }
  return received;
}

}  // namespace

void checkAddedParts(const at::Tensor& received, int64_t ranks) {
  checkParts("add_parts", received, ranks);
  TORCH_CHECK(received.is_floating_point(), "add_parts: found ", received.scalar_type(),
              ", expected a floating type");
}

at::Tensor addPartsByOps(const at::Tensor& received, int64_t ranks, bool mean) {
  at::Tensor own = makeAdded(received, ranks, mean);
  const int64_t rows = own.size(0);
  const bool isNarrow = own.element_size() < 4;
  at::Tensor sum = isNarrow ? at::empty(own.sizes(), own.options().dtype(at::kFloat)) : own;
  sum.copy_(received.narrow(0, 0, rows));
  for (int64_t i = 1; i < ranks; ++i) sum.add_(received.narrow(0, i * rows, rows));
  if (mean) sum.div_(ranks);
  if (isNarrow) own.copy_(sum);
  return own;
}

void useRanks(Communicator* ranks) { ranksOfThread = ranks; }

TensorRanksScope::TensorRanksScope(TensorRanks* ranks)
    : before_(std::exchange(tensorRanksOfThread, ranks)) {}
TensorRanksScope::~TensorRanksScope() { tensorRanksOfThread = before_; }

RanksAlike::RanksAlike() : before_(std::exchange(areRanksAlike, true)) {}
RanksAlike::~RanksAlike() { areRanksAlike = before_; }

TORCH_LIBRARY_FRAGMENT(stowage, library) {
  library.def("all_gather(Tensor own, int ranks) -> Tensor");
  library.def("all_to_all(Tensor parts, int ranks) -> Tensor");
  library.def("add_parts(Tensor received, int ranks, bool mean) -> Tensor");
}

TORCH_LIBRARY_IMPL(stowage, CPU, library) {
  library.impl("all_gather", allGather);
  library.impl("all_to_all", allToAll);
  library.impl("add_parts", addPartsByOps);
}

// add_parts on a GPU: runtime/cuda/add_parts.cpp
TORCH_LIBRARY_IMPL(stowage, CUDA, library) {
  library.impl("all_gather", allGatherOnGpu);
  library.impl("all_to_all", allToAllOnGpu);
}

TORCH_LIBRARY_IMPL(stowage, Meta, library) {
  library.impl("all_gather", makeGathered);
  library.impl("all_to_all", makeReceived);
  library.impl("add_parts", makeAdded);
}

}  // namespace stowage::runtime
