// SPDX-License-Identifier: Apache-2.0
//
// Idle time of a link against an array that is looked through from end to end, and what the ledger
// says about copies of one gap: they may begin with the last write and are free when the host has
// the bytes.
#include "planner/search/link_ledger.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/small_step.h"

namespace stowage::planner {
namespace {

using ir::Role;

/// The same, slowly.
class PlainIdle {
 public:
  explicit PlainIdle(std::vector<int64_t> idle) : idle_(std::move(idle)) {}
  int64_t& at(int64_t i) {
    const auto n = static_cast<int64_t>(idle_.size());
    return idle_[static_cast<size_t>(((i % n) + n) % n)];
  }
  int64_t between(int64_t begin, int64_t end) {
    int64_t sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += at(i);
    return sum;
  }
  void take(int64_t begin, int64_t end, int64_t time, bool latest) {
    for (int64_t k = 0; k < end - begin; ++k) {
      int64_t& idle = at(latest ? end - 1 - k : begin + k);
      const int64_t taken = std::min(idle, time);
      idle -= taken;
      time -= taken;
    }
  }

 private:
  std::vector<int64_t> idle_;
};

TEST(IdleTime, CountsLikeAnArray) {
  std::mt19937_64 random(1);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (const int64_t nodes : {1, 2, 7, 16, 33}) {
    std::vector<int64_t> times;
    for (int64_t i = 0; i < nodes; ++i) times.push_back(below(20));
    IdleTime idle(times);
    PlainIdle plain(times);
    for (int round = 0; round < 300; ++round) {
      const int64_t begin = below(2 * nodes) - nodes;
      const int64_t end = begin + below(nodes + 1);
      ASSERT_EQ(idle.between(begin, end), plain.between(begin, end));
      const int64_t time = below(25);
      switch (below(3)) {
        case 0:
          idle.takeEarliest(begin, end, time);
          plain.take(begin, end, time, /*latest=*/false);
          break;
        case 1:
          idle.takeLatest(begin, end, time);
          plain.take(begin, end, time, /*latest=*/true);
          break;
        default:
          idle.add(begin, time);
          plain.at(begin) += time;
      }
    }
  }
}

TEST(LinkLedger, CopiesBeginWithTheLastWriteAndAreMadeOnce) {
  // Item 0 is frozen; 1 is made by node 0, read by nodes 1, 3 and 5. Nodes take 4, a copy 6.
  tests::SmallStep step{.items = {{Role::kFrozen, 2}, {Role::kActivation, 3}}};
  step.nodes = {{.op = "test.a.default", .time = 4, .reads = {0}, .results = {1}}};
  for (int i = 1; i < 6; ++i) {
    step.nodes.push_back({.op = "test.b.default", .time = 4, .reads = {i % 2 == 0 ? 0 : 1}});
  }
  step.outPerUnit = step.inPerUnit = 2;
  const ir::Graph graph = tests::toGraph(step);
  const ir::Target target = tests::smallTarget();
  const Problem problem = tests::toProblem(step, graph, target);
  const GapTable table(problem);
  LinkLedger ledger(table);
  const size_t frozen = table.gapIndex(ir::StorageId(0), 0);
  const size_t early = table.gapIndex(ir::StorageId(1), 1);  // between nodes 1 and 3
  const size_t late = table.gapIndex(ir::StorageId(1), 2);   // between nodes 3 and 5
  constexpr int64_t kUnit = tests::kUnitTime;
  EXPECT_EQ(ledger.origin(frozen, 1), LinkLedger::Origin::kHost);
  EXPECT_EQ(ledger.origin(late, 4), LinkLedger::Origin::kThisStep);
  // Out while node 1 runs, which is 2 too little; back from node 3 on, none of which is before 3.
  EXPECT_EQ(ledger.wait(early, 2, 3), (2 + 6) * kUnit);
  // Out while nodes 1 to 3 run.
  EXPECT_EQ(ledger.wait(late, 4, 6), 2 * kUnit);
  ledger.book(late, 4, 6);
  EXPECT_EQ(ledger.wait(early, 2, 5), 0)
      << "the host has it, and the link is idle in nodes 3 and 4";
}

}  // namespace
}  // namespace stowage::planner
