// SPDX-License-Identifier: Apache-2.0
//
// The search for the largest size that fits, on sizes whose need is a formula.
#include "tools/planning/fit_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/or_fail.h"

namespace stowage::tools {
namespace {

/// 20 bytes, and `perSize` for each; the host needs one byte for each.
class Formula {
 public:
  explicit Formula(int64_t perSize, int64_t host = INT64_MAX) : perSize_(perSize), host_(host) {}
  int64_t need(int64_t size) const { return 20 + perSize_ * size; }
  FitSearch search(int64_t most) { return search(FitSizes{.most = most}); }
  FitSearch search(const FitSizes& sizes) {
    return {[this](int64_t size, Bytes budget) { return planFor(size, budget); }, sizes};
  }
  int plans() const { return plans_; }

 private:
  ir::Expected<FitAnswer> planFor(int64_t size, Bytes budget) {
    ++plans_;
    if (size > host_) return FitAnswer(FitLack{.isDevice = false, .smallest = Bytes(size)});
    if (Bytes(need(size)) > budget) return FitAnswer(FitLack{.smallest = Bytes(need(size))});
    return FitAnswer(FitRow{.size = size,
                            .tokens = 2 * size,
                            .peak = Bytes(need(size)),
                            .stepTime = Nanoseconds(10 * size)});
  }

  int64_t perSize_, host_;
  int plans_ = 0;
};

TEST(FitSearch, FindsTheLargestForEachBudget) {
  for (const int64_t perSize : {1, 7, 33, 100}) {
    for (const int64_t most : {1, 5, 64, 4096}) {
      Formula formula(perSize);
      FitSearch search = formula.search(most);
      for (const int64_t budget : {100, 10, 125, 150, 1000}) {
        const int64_t best = std::clamp<int64_t>((budget - 20) / perSize, 0, most);
        EXPECT_EQ(tests::orFail(search.find(Bytes(budget))), best) << perSize << ' ' << budget;
        const std::optional<FitRow> row = tests::orFail(search.findRow(Bytes(budget)));
        EXPECT_EQ(row ? row->size : 0, best) << perSize << ' ' << budget;
      }
    }
  }
}

TEST(FitSearch, ListsWhatFitsAndWhatTheNextSizeLacks) {
  Formula formula(10);
  FitSearch search = formula.search(4096);
  EXPECT_EQ(tests::orFail(search.find(Bytes(75))), 5);
  std::vector<int64_t> sizes;
  for (const FitRow& row : search.rows(Bytes(75))) sizes.push_back(row.size);
  EXPECT_EQ(sizes, (std::vector<int64_t>{1, 2, 4, 5}));
  EXPECT_EQ(search.rows(Bytes(75)).back().nsPerToken(), 5);
  EXPECT_EQ(search.lackOf(6, Bytes(75))->smallest, Bytes(80));
  EXPECT_FALSE(search.lackOf(5, Bytes(75)).has_value());
  EXPECT_FALSE(search.lackOf(7, Bytes(75)).has_value());
}

// 8 is known to fit in 105. Above it 16, 12, 10 and 9 are tried, then 8 for its row.
TEST(FitSearch, ALargerBudgetTakesFewPlansMore) {
  Formula formula(10);
  FitSearch search = formula.search(4096);
  EXPECT_EQ(tests::orFail(search.find(Bytes(75))), 5);
  const int before = formula.plans();
  EXPECT_EQ(tests::orFail(search.findRow(Bytes(105)))->size, 8);
  EXPECT_EQ(formula.plans() - before, 5);
}

// Batch norm needs two rows, micro-batches need multiples.
TEST(FitSearch, TriesMultiplesFromTheLeastSizeOn) {
  for (const int64_t multiple : {1, 3, 8}) {
    for (const int64_t least : {1, 2, 9}) {
      Formula formula(10);
      const FitSizes sizes = {.least = least, .most = 50, .multipleOf = multiple};
      FitSearch search = formula.search(sizes);
      for (const int64_t budget : {20, 45, 110, 300, 2000}) {
        int64_t best = std::min<int64_t>((budget - 20) / 10, 50) / multiple * multiple;
        if (best < least) best = 0;
        EXPECT_EQ(tests::orFail(search.find(Bytes(budget))), best) << multiple << ' ' << budget;
        for (const FitRow& row : search.rows(Bytes(budget))) {
          EXPECT_EQ(row.size % multiple, 0);
          EXPECT_GE(row.size, least);
        }
        const int64_t next = search.sizeAfter(best);
        EXPECT_EQ(next, std::max(best + multiple, sizes.first()));
      }
    }
  }
}

// The host's limit is no budget of the device: nothing follows for larger ones.
TEST(FitSearch, TellsMemoryOfTheHostApart) {
  Formula formula(10, /*host=*/3);
  FitSearch search = formula.search(4096);
  EXPECT_EQ(tests::orFail(search.find(Bytes(1000))), 3);
  EXPECT_FALSE(search.lackOf(4, Bytes(1000))->isDevice);
  EXPECT_EQ(tests::orFail(search.find(Bytes(2000))), 3);
}

}  // namespace
}  // namespace stowage::tools
