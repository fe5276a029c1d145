// SPDX-License-Identifier: Apache-2.0
//
// Batches drawn before their steps: in the source's order, with the clock stopped, within the room.
#include "runtime/training/batches_ahead.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/or_fail.h"

namespace stowage::runtime {
namespace {

using tests::orFail;

constexpr Bytes kBatch = Bytes(8);

/// What happened: "[" the clock is stopped, a number: a batch is drawn, "]" it runs again.
class Record {
 public:
  BatchesAhead ahead(int64_t first, int64_t last, Bytes room) {
    return BatchesAhead(
        source_, first, last,
        [this] {
          text_ += "[";
          return ir::success();
        },
        [this] { text_ += "]"; }, room);
  }
  const std::string& text() const { return text_; }
  int64_t bad = -1;  // a step whose batch cannot be had

 private:
  std::string text_;
  BatchSource source_ = [this](int64_t step) -> ir::Expected<Batch> {
    if (step == bad) return ir::makeError(ir::ErrorCode::kParse, "no such batch");
    text_ += std::to_string(step);
    return Batch{at::full({1}, step, at::TensorOptions().dtype(c10::kLong))};
  };
};

int64_t numberOf(ir::Expected<Batch> batch) { return orFail(std::move(batch))[0].item<int64_t>(); }

TEST(BatchesAhead, AllAreDrawnBeforeTheFirstStepWhereThereIsRoom) {
  Record record;
  BatchesAhead ahead = record.ahead(2, 6, Bytes(1024));
  for (int64_t step = 2; step < 6; ++step) EXPECT_EQ(numberOf(ahead.next()), step);
  EXPECT_EQ(record.text(), "[2345]");
}

TEST(BatchesAhead, AsManyAreHeldAsThereIsRoomFor) {
  Record record;
  BatchesAhead ahead = record.ahead(0, 5, kBatch * 2);
  for (int64_t step = 0; step < 5; ++step) EXPECT_EQ(numberOf(ahead.next()), step);
  EXPECT_EQ(record.text(), "[01][23][4]");
  Record narrow;
  BatchesAhead single = narrow.ahead(0, 2, Bytes(1));
  EXPECT_EQ(numberOf(single.next()), 0);
  EXPECT_EQ(numberOf(single.next()), 1);
  EXPECT_EQ(narrow.text(), "[0][1]");
}

TEST(BatchesAhead, NothingIsDrawnBetweenStepsThatBelongTogether) {
  Record record;
  BatchesAhead ahead = record.ahead(0, 5, kBatch * 3);
  EXPECT_EQ(numberOf(ahead.next()), 0);
  EXPECT_EQ(numberOf(ahead.next()), 1);
  EXPECT_EQ(numberOf(ahead.next(3)), 2);
  EXPECT_EQ(record.text(), "[012][34]") << "one was there, two are drawn before";
}

TEST(BatchesAhead, ABatchThatCannotBeHadIsAnErrorWhenItsStepIsDue) {
  Record record;
  record.bad = 1;
  BatchesAhead ahead = record.ahead(0, 3, Bytes(1024));
  EXPECT_EQ(numberOf(ahead.next()), 0);
  ir::Expected<Batch> batch = ahead.next();
  ASSERT_FALSE(batch);
  EXPECT_EQ(ir::describe(batch.takeError()), "no such batch");
}

}  // namespace
}  // namespace stowage::runtime
