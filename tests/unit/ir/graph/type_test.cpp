// SPDX-License-Identifier: Apache-2.0
//
// Extents, contiguity and strides of tensor types, malformed ones included.

#include "ir/graph/type.h"

#include <gtest/gtest.h>

#include <limits>

namespace stowage::ir {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TEST(TensorType, ExtentCountsToTheLastElementTouched) {
  const TensorType dense{.dtype = DType::kBF16, .sizes = {4, 8}, .strides = {8, 1}};
  EXPECT_EQ(dense.extentBytes(), Bytes(64));
  EXPECT_EQ(dense.numElements(), 32);
  const TensorType column{.dtype = DType::kF32, .sizes = {4}, .strides = {8}, .offset = 3};
  EXPECT_EQ(column.extentBytes(), Bytes(4 * (3 + 3 * 8 + 1)));
  const TensorType scalar{.dtype = DType::kF64};
  EXPECT_EQ(scalar.extentBytes(), Bytes(8));
  const TensorType empty{.sizes = {4, 0, 3}, .strides = {3, 3, 1}, .offset = 5};
  EXPECT_EQ(empty.extentBytes(), Bytes(0));
  const TensorType expanded{.sizes = {5, 2}, .strides = {0, 1}};
  EXPECT_EQ(expanded.extentBytes(), Bytes(8));
}

TEST(TensorType, MalformedTypesHaveNoExtent) {
  EXPECT_FALSE((TensorType{.sizes = {2}, .strides = {}}).findExtentBytes());
  EXPECT_FALSE((TensorType{.sizes = {-1}, .strides = {1}}).findExtentBytes());
  EXPECT_FALSE((TensorType{.sizes = {2}, .strides = {-1}}).findExtentBytes());
  EXPECT_FALSE((TensorType{.sizes = {2}, .strides = {1}, .offset = -1}).findExtentBytes());
  EXPECT_FALSE((TensorType{.sizes = {kHuge, kHuge}, .strides = {0, 0}}).findExtentBytes());
  EXPECT_FALSE((TensorType{.sizes = {kHuge}, .strides = {kHuge}}).findExtentBytes());
  EXPECT_FALSE((TensorType{.sizes = {kHuge}, .strides = {1}}).findExtentBytes());
  EXPECT_FALSE((TensorType{.sizes = {2}, .strides = {1}, .offset = kHuge}).findExtentBytes());
  EXPECT_FALSE((TensorType{.sizes = {0, kHuge, 4}, .strides = {0, 0, 0}}).findExtentBytes());
  EXPECT_FALSE(findContiguousStrides({kHuge, kHuge}));
  EXPECT_FALSE(findContiguousStrides({-1}));
}

TEST(TensorType, ContiguityIgnoresDimensionsOfSizeOneAndEmptyTensors) {
  EXPECT_TRUE((TensorType{.sizes = {4, 1, 8}, .strides = {8, 77, 1}}).isContiguous());
  EXPECT_FALSE((TensorType{.sizes = {4, 8}, .strides = {1, 4}}).isContiguous());
  EXPECT_TRUE((TensorType{.sizes = {4, 0}, .strides = {9, 9}}).isContiguous());
  EXPECT_EQ(contiguousStrides({2, 0, 3}), (llvm::SmallVector<int64_t, 4>{3, 3, 1}));
  EXPECT_EQ(contiguousStrides({2, 5, 3}), (llvm::SmallVector<int64_t, 4>{15, 3, 1}));
  EXPECT_TRUE(contiguousStrides({}).empty());
}

TEST(TensorType, DenseTypesHaveEveryElementOnceAndNothingBetween) {
  EXPECT_TRUE((TensorType{.sizes = {4, 8}, .strides = {8, 1}}).isDense());
  EXPECT_TRUE((TensorType{.sizes = {4, 8}, .strides = {1, 4}}).isDense()) << "transposed";
  EXPECT_TRUE((TensorType{.sizes = {4, 1, 8}, .strides = {8, 77, 1}}).isDense());
  EXPECT_TRUE((TensorType{.sizes = {2}, .strides = {1}, .offset = 5}).isDense());
  EXPECT_TRUE((TensorType{.sizes = {4, 0}, .strides = {9, 9}}).isDense());
  EXPECT_FALSE((TensorType{.sizes = {4, 8}, .strides = {9, 1}}).isDense()) << "gaps";
  EXPECT_FALSE((TensorType{.sizes = {4, 8}, .strides = {0, 1}}).isDense()) << "expanded";
  EXPECT_FALSE((TensorType{.sizes = {3, 3, 2}, .strides = {1, 1, 9}}).isDense()) << "overlapping";
}

TEST(TensorType, CoversAStorageOfItsSizeFromTheStart) {
  const TensorType type{.dtype = DType::kF32, .sizes = {2, 3}, .strides = {1, 2}};
  EXPECT_TRUE(type.covers(Bytes(24)));
  EXPECT_FALSE(type.covers(Bytes(28)));
  EXPECT_FALSE((TensorType{.sizes = {2}, .strides = {1}, .offset = 1}).covers(Bytes(8)));
  EXPECT_FALSE((TensorType{.sizes = {2, 2}, .strides = {1, 1}}).covers(Bytes(16)));
  EXPECT_TRUE((TensorType{.sizes = {0}, .strides = {1}}).covers(Bytes(0)));
  EXPECT_EQ(listText(type.sizes), "[2,3]");
  EXPECT_EQ(listText({}), "[]");
}

}  // namespace
}  // namespace stowage::ir
