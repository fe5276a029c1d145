// SPDX-License-Identifier: Apache-2.0
//
// The ops beside plain loops over all ranks' numbers, bit for bit.
#include "runtime/collectives/collective_ops.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "ir/graph/op_table.h"
#include "runtime/ranks/local_ranks.h"
#include "runtime/torch/torch_boundary.h"
#include "tests/support/on_ranks.h"

namespace stowage::runtime {
namespace {

using Stack = std::vector<c10::IValue>;

at::Tensor call(const char* op, Stack stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow(op, "").callBoxed(stack);
  return stack.at(0).toTensor();
}
at::Tensor gather(const at::Tensor& own, int64_t ranks) {
  return call("stowage::all_gather", {own, ranks});
}
at::Tensor exchange(const at::Tensor& parts, int64_t ranks) {
  return call("stowage::all_to_all", {parts, ranks});
}
at::Tensor add(const at::Tensor& received, int64_t ranks, bool mean) {
  return call("stowage::add_parts", {received, ranks, mean});
}
at::Tensor scatter(const at::Tensor& parts, int64_t ranks, bool mean) {
  return add(exchange(parts, ranks), ranks, mean);
}

/// What `work` returns for each rank.
std::vector<at::Tensor> resultsOn(size_t count, const std::function<at::Tensor(size_t)>& work) {
  std::vector<at::Tensor> results(count);
  EXPECT_EQ(
      tests::onRanks(count,
                     [&](size_t rank, Communicator&) {
                       return ir::describe(callTorch("", [&] { results[rank] = work(rank); }));
                     }),
      "");
  return results;
}

at::Tensor numbers(at::IntArrayRef sizes, at::ScalarType dtype) {
  if (dtype == at::kLong) return at::randint(-9, 9, sizes, at::TensorOptions().dtype(dtype));
  return at::randn(sizes).to(dtype);
}

/// One number after the other, as the text says: in rank order, narrow ones as floats.
template <typename Sum>
at::Tensor addedByHand(const std::vector<at::Tensor>& parts, size_t rank, bool mean) {
  const auto ranks = static_cast<int64_t>(parts.size());
  const int64_t rows = parts.front().size(0) / ranks;
  const at::Tensor wide = parts.front().to(c10::CppTypeToScalarType<Sum>::value);
  at::Tensor sum = at::empty_like(wide.narrow(0, 0, rows));
  for (int64_t k = 0; k < sum.numel(); ++k) {
    Sum total = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const at::Tensor own = parts[i]
                                 .narrow(0, static_cast<int64_t>(rank) * rows, rows)
                                 .to(c10::CppTypeToScalarType<Sum>::value);
      const Sum number = own.template const_data_ptr<Sum>()[k];
      total = i == 0 ? number : total + number;
    }
    sum.template mutable_data_ptr<Sum>()[k] = mean ? total / static_cast<Sum>(ranks) : total;
  }
  return sum.to(parts.front().scalar_type());
}

bool haveSameBits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

TEST(CollectiveOps, GatherHasThePartsOfAllRanksInTheirOrder) {
  for (const size_t count : {1U, 2U, 3U, 4U}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble, at::kLong}) {
      std::vector<at::Tensor> own;
      for (size_t i = 0; i < count; ++i) own.push_back(numbers({5, 3}, dtype));
      const auto found = resultsOn(
          count, [&](size_t rank) { return gather(own[rank], static_cast<int64_t>(count)); });
      for (const at::Tensor& all : found) EXPECT_TRUE(haveSameBits(all, at::cat(own)));
    }
  }
}

TEST(CollectiveOps, SumsAreMadeInRankOrder) {
  for (const size_t count : {1U, 2U, 3U, 4U}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
      for (const bool mean : {false, true}) {
        std::vector<at::Tensor> parts;
        for (size_t i = 0; i < count; ++i) {
          parts.push_back(numbers({static_cast<int64_t>(count) * 7, 2}, dtype));
        }
        const auto found = resultsOn(count, [&](size_t rank) {
          return scatter(parts[rank], static_cast<int64_t>(count), mean);
        });
        for (size_t i = 0; i < count; ++i) {
          const at::Tensor expected = dtype == at::kDouble ? addedByHand<double>(parts, i, mean)
                                                           : addedByHand<float>(parts, i, mean);
          EXPECT_TRUE(haveSameBits(found[i], expected)) << count << " " << dtype << " " << mean;
        }
      }
    }
  }
}

// Else a sum in another order would pass the test above.
TEST(CollectiveOps, ASumInAnotherOrderHasOtherBits) {
  std::vector<at::Tensor> parts = {at::randn({512}), at::randn({512}), at::randn({512}),
                                   at::randn({512})};
  const at::Tensor forwards = addedByHand<float>(parts, 0, false);
  std::reverse(parts.begin(), parts.end());
  EXPECT_FALSE(haveSameBits(forwards, addedByHand<float>(parts, 0, false)));
}

TEST(CollectiveOps, TensorsWithoutElementsAreFine) {
  const auto found = resultsOn(2, [](size_t) { return scatter(at::empty({0, 3}), 2, true); });
  EXPECT_EQ(found[1].sizes(), (at::IntArrayRef{0, 3}));
  EXPECT_EQ(resultsOn(2, [](size_t) { return gather(at::empty({0}), 2); })[0].numel(), 0);
}

TEST(CollectiveOps, ShapesAreKnownWithoutData) {
  const at::Tensor meta = at::empty({6, 2}, at::TensorOptions().device(at::kMeta));
  EXPECT_EQ(gather(meta, 3).sizes(), (at::IntArrayRef{18, 2}));
  EXPECT_EQ(scatter(meta, 3, true).sizes(), (at::IntArrayRef{2, 2}));
}

std::string errorOf(const std::function<void()>& work) {
  return ir::describe(callTorch("", [&] { work(); }));
}

TEST(CollectiveOps, RefuseWhatTheyCannotDo) {
  const RanksAlike alike;
  const at::Tensor good = at::randn({6, 2});
  EXPECT_EQ(errorOf([&] { (void)gather(good, 3); }), "");
  for (const int64_t ranks : {int64_t{0}, int64_t{-2}, int64_t{1} << 40}) {
    EXPECT_NE(errorOf([&] { (void)gather(good, ranks); }).find("ranks, expected 1 to"),
              std::string::npos);
  }
  EXPECT_NE(errorOf([&] { (void)gather(good.t(), 2); }).find("expected a contiguous one"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { (void)gather(at::randn({}), 2); }).find("a dimension at least"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { (void)exchange(good, 4); }).find("expected a multiple of the 4"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { (void)add(good, 4, false); }).find("expected a multiple of the 4"),
            std::string::npos);
  EXPECT_NE(errorOf([&] {
              (void)add(numbers({4}, at::kLong), 2, false);
            }).find("expected a floating type"),
            std::string::npos);
}

TEST(CollectiveOps, WithoutTheRanksTheyFail) {
  useRanks(nullptr);
  EXPECT_NE(errorOf([] { (void)gather(at::randn({4}), 2); }).find("this process is no rank"),
            std::string::npos);
  const auto ranks = makeLocalRanks(1);
  useRanks(ranks[0].get());
  EXPECT_NE(errorOf([] { (void)gather(at::randn({4}), 2); }).find("found 1 ranks here, expected 2"),
            std::string::npos);
  useRanks(nullptr);
}

TEST(CollectiveOps, RanksThatAreAlikeNeedNobody) {
  const at::Tensor own = at::randn({4});
  {
    const RanksAlike alike;
    EXPECT_TRUE(haveSameBits(gather(own, 2), at::cat({own, own})));
    EXPECT_TRUE(
        haveSameBits(exchange(own, 2), at::cat({own.narrow(0, 0, 2), own.narrow(0, 0, 2)})));
  }
  EXPECT_NE(errorOf([&] { (void)gather(own, 2); }), "");
}

// It needs no ranks, so a plan may launch it anywhere.
TEST(CollectiveOps, PartsAreAddedByARankAlone) {
  useRanks(nullptr);
  const at::Tensor received = at::randn({3, 4});
  const at::Tensor sum = add(received, 3, false);
  EXPECT_TRUE(haveSameBits(
      sum,
      received.select(0, 0).add(received.select(0, 1)).add(received.select(0, 2)).view({1, 4})));
}

/// The table lets a plan gather again, and never exchange again.
TEST(CollectiveOps, OnlyTheGatherMayBeRepeated) {
  EXPECT_TRUE(ir::lookUpOp("stowage.all_gather.default").recomputable);
  EXPECT_FALSE(ir::lookUpOp("stowage.all_to_all.default").recomputable);
  EXPECT_TRUE(ir::lookUpOp("stowage.add_parts.default").recomputable);
}

}  // namespace
}  // namespace stowage::runtime
