// SPDX-License-Identifier: Apache-2.0
//
// The step allocator: planned addresses for results, the temp region for the rest in any order from
// any thread, and a refusal that names the op for one byte more.
#include "runtime/memory/step_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/memory/allocation_log.h"

namespace stowage::tests {
namespace {

using runtime::AllocatingThread;
using runtime::AllocationLog;
using runtime::LaunchPlacement;
using runtime::StepAllocator;

constexpr AllocatingThread kMain = AllocatingThread::kMain;
constexpr AllocatingThread kOther = AllocatingThread::kOther;
constexpr int64_t kUnit = 512;

struct Fixture {
  std::vector<uint8_t> arena = std::vector<uint8_t>(1 << 20);
  StepAllocator allocator{arena.data(), Bytes(1 << 20), kUnit};
  // 4096 bytes of temporaries at 8192; allocation 1 is a result of 1000 bytes at 512.
  LaunchPlacement placement{{{1, 512, Bytes(1000)}}, 8192, Bytes(4096)};

  int64_t offset(const uint8_t* address) const { return address - arena.data(); }
};

TEST(StepAllocator, ServesResultsByOrdinalAndTheRestFromTheRegion) {
  Fixture f;
  f.allocator.beginLaunch(f.placement, "aten.op");
  uint8_t* temporary = f.allocator.allocate(Bytes(600), kMain);
  EXPECT_EQ(f.offset(temporary), 8192);
  EXPECT_EQ(f.offset(f.allocator.allocate(Bytes(1000), kMain)), 512);
  EXPECT_EQ(f.offset(f.allocator.allocate(Bytes(1), kOther)), 8192 + 4096 - 512);
  f.allocator.release(f.arena.data() + 8192 + 4096 - 512);
  f.allocator.release(temporary);
  f.allocator.release(f.arena.data() + 512);
  EXPECT_EQ(ir::describe(f.allocator.endLaunch()), "");
}

TEST(StepAllocator, KnowsHowHighItServed) {
  Fixture f;
  const auto serve = [&](Bytes temporary, AllocatingThread thread) {
    f.allocator.beginLaunch(f.placement, "aten.op");
    uint8_t* address = f.allocator.allocate(temporary, thread);
    f.allocator.allocate(Bytes(1000), kMain);
    f.allocator.release(address);
    (void)ir::describe(f.allocator.endLaunch());
    return f.allocator.servedPeak();
  };
  EXPECT_EQ(f.allocator.servedPeak(), Bytes(0));
  EXPECT_EQ(serve(Bytes(1), kMain), Bytes(8192 + 512));
  EXPECT_EQ(serve(Bytes(1), kOther), Bytes(8192 + 4096));
  f.placement.operandsEnd = 32768;
  EXPECT_EQ(serve(Bytes(1), kMain), Bytes(32768));
  f.placement.results[0].offset = 65536;
  EXPECT_EQ(serve(Bytes(1), kMain), Bytes(65536 + 1024)) << "in whole units";
  EXPECT_EQ(serve(Bytes(5000), kMain), Bytes(65536 + 1024)) << "refused";
}

TEST(StepAllocator, RefusesOneByteTooMuchAndNamesTheOp) {
  Fixture f;
  f.allocator.beginLaunch(f.placement, "aten.op (fc, forward)");
  uint8_t* all = f.allocator.allocate(Bytes(4096), kMain);
  ASSERT_NE(all, nullptr);
  f.allocator.allocate(Bytes(1000), kMain);
  EXPECT_EQ(f.allocator.allocate(Bytes(1), kOther), nullptr);
  f.allocator.release(all);
  ir::PlanError error = ir::takePayload(f.allocator.endLaunch());
  EXPECT_EQ(error.code(), ir::ErrorCode::kOutOfDeviceMemory);
  EXPECT_EQ(error.text(),
            "aten.op (fc, forward) asks for 1 bytes of temporaries with 4096 in use, its temp "
            "region has 4096");
}

TEST(StepAllocator, RefusesAResultOfAnotherSize) {
  for (const int64_t bytes : {999, 1001}) {
    Fixture f;
    f.allocator.beginLaunch(f.placement, "aten.op");
    f.allocator.release(f.allocator.allocate(Bytes(1), kMain));
    EXPECT_EQ(f.allocator.allocate(Bytes(bytes), kMain), nullptr);
    EXPECT_EQ(ir::describe(f.allocator.endLaunch()),
              "aten.op asks for " + std::to_string(bytes) +
                  " bytes in allocation 1, expected a result of 1000");
  }
}

TEST(StepAllocator, ReportsAResultThatWasNotAskedFor) {
  Fixture f;
  f.allocator.beginLaunch(f.placement, "aten.op");
  f.allocator.release(f.allocator.allocate(Bytes(8), kMain));
  EXPECT_NE(ir::describe(f.allocator.endLaunch()).find("made 0 of the results"), std::string::npos);
}

TEST(StepAllocator, ReportsTemporariesThatStay) {
  Fixture f;
  f.allocator.beginLaunch(f.placement, "aten.op");
  f.allocator.allocate(Bytes(8), kMain);
  f.allocator.allocate(Bytes(1000), kMain);
  EXPECT_EQ(ir::describe(f.allocator.endLaunch()),
            "aten.op keeps 512 bytes of temporaries after its call");
}

TEST(StepAllocator, OrdinalsCountOnTheMainThreadAlone) {
  Fixture f;
  f.allocator.beginLaunch(f.placement, "aten.op");
  for (int i = 0; i < 3; ++i) f.allocator.release(f.allocator.allocate(Bytes(8), kOther));
  f.allocator.release(f.allocator.allocate(Bytes(8), kMain));
  EXPECT_EQ(f.offset(f.allocator.allocate(Bytes(1000), kMain)), 512);
  EXPECT_EQ(ir::describe(f.allocator.endLaunch()), "");
}

// One made-up op: what its main thread and its workers allocate and release, in order.
struct Script {
  struct Action {
    int64_t bytes = 0;  // 0: release
    size_t block = 0;   // of its thread's allocations
  };
  std::vector<Action> main;
  std::vector<std::vector<Action>> workers;
};

std::vector<Script::Action> makeActions(std::mt19937_64& engine, int count) {
  std::vector<Script::Action> actions;
  std::vector<size_t> live;
  size_t next = 0;
  for (int i = 0; i < count; ++i) {
    if (!live.empty() && engine() % 2 == 0) {
      const size_t k = engine() % live.size();
      actions.push_back({0, live[k]});
      live.erase(live.begin() + static_cast<int64_t>(k));
    } else {
      actions.push_back({static_cast<int64_t>(1 + engine() % 3000), next});
      live.push_back(next++);
    }
  }
  for (const size_t block : live) actions.push_back({0, block});
  return actions;
}

Script makeScript(std::mt19937_64& engine) {
  Script script{makeActions(engine, 30), {}};
  for (int w = 0; w < 3; ++w) script.workers.push_back(makeActions(engine, 10));
  return script;
}

// What a measurement of the script says.
ir::OpCost measure(const Script& script) {
  AllocationLog log;
  uintptr_t next = 1;
  const auto play = [&](const std::vector<Script::Action>& actions, AllocatingThread thread) {
    std::vector<const void*> blocks;
    for (const Script::Action& action : actions) {
      if (action.bytes > 0) {
        blocks.push_back(reinterpret_cast<const void*>(next++));
        log.addAllocation(blocks.back(), Bytes(action.bytes), thread);
      } else {
        log.addRelease(blocks[action.block]);
      }
    }
  };
  play(script.main, kMain);
  for (const auto& worker : script.workers) play(worker, kOther);
  ir::OpCost cost;
  EXPECT_EQ(ir::describe(log.summarize({}, kUnit, cost)), "");
  return cost;
}

// The measured need suffices however the threads interleave.
TEST(StepAllocator, MeasuredNeedFitsUnderAnyInterleaving) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 engine(seed);
    const Script script = makeScript(engine);
    const ir::OpCost cost = measure(script);
    Fixture f;
    f.placement = {{}, 8192, cost.temporary};
    ASSERT_LE(8192 + cost.temporary.value(), 1 << 20);
    f.allocator.beginLaunch(f.placement, "aten.op");
    std::vector<const std::vector<Script::Action>*> threads{&script.main};
    for (const auto& worker : script.workers) threads.push_back(&worker);
    std::vector<size_t> at(threads.size(), 0);
    std::vector<std::vector<uint8_t*>> blocks(threads.size());
    while (true) {
      std::vector<size_t> open;
      for (size_t t = 0; t < threads.size(); ++t) {
        if (at[t] < threads[t]->size()) open.push_back(t);
      }
      if (open.empty()) break;
      const size_t t = open[engine() % open.size()];
      const Script::Action action = (*threads[t])[at[t]++];
      if (action.bytes > 0) {
        blocks[t].push_back(f.allocator.allocate(Bytes(action.bytes), t == 0 ? kMain : kOther));
        ASSERT_NE(blocks[t].back(), nullptr) << "seed " << seed;
      } else {
        f.allocator.release(blocks[t][action.block]);
      }
    }
    ASSERT_EQ(ir::describe(f.allocator.endLaunch()), "") << "seed " << seed;
  }
}

TEST(StepAllocator, OneUnitLessThanTheMeasuredNeedIsRefused) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 engine(seed);
    Script script = makeScript(engine);
    script.workers.clear();
    const ir::OpCost cost = measure(script);
    Fixture f;
    f.placement = {{}, 8192, cost.temporary - Bytes(kUnit)};
    f.allocator.beginLaunch(f.placement, "aten.op");
    std::vector<uint8_t*> blocks;
    for (const Script::Action& action : script.main) {
      if (action.bytes > 0) {
        blocks.push_back(f.allocator.allocate(Bytes(action.bytes), kMain));
      } else if (blocks[action.block] != nullptr) {
        f.allocator.release(blocks[action.block]);
      }
    }
    EXPECT_NE(ir::describe(f.allocator.endLaunch()), "") << "seed " << seed;
  }
}

TEST(StepAllocator, ThreadsAllocateAtTheSameTime) {
  Fixture f;
  f.placement = {{}, 0, Bytes(1 << 20)};
  f.allocator.beginLaunch(f.placement, "aten.op");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        uint8_t* block = f.allocator.allocate(Bytes(700), t == 0 ? kMain : kOther);
        std::fill(block, block + 700, static_cast<uint8_t>(t));
        EXPECT_EQ(std::count(block, block + 700, static_cast<uint8_t>(t)), 700);
        f.allocator.release(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ir::describe(f.allocator.endLaunch()), "");
}

TEST(AllocationLog, FindsResultsAndThePeakOfTheRest) {
  AllocationLog log;
  const auto block = [](uintptr_t n) { return reinterpret_cast<const void*>(n); };
  log.addAllocation(block(1), Bytes(512), kMain);  // temporary at 0
  log.addAllocation(block(2), Bytes(100), kMain);  // result 1
  log.addAllocation(block(3), Bytes(512), kMain);  // temporary at 512
  log.addRelease(block(1));
  log.addAllocation(block(1), Bytes(512), kMain);   // temporary at 0 again, at the same address
  log.addAllocation(block(9), Bytes(600), kOther);  // 1024 after rounding
  log.addRelease(block(9));
  log.addRelease(block(1));
  log.addRelease(block(3));
  log.addAllocation(block(1), Bytes(64), kMain);  // result 0
  ir::OpCost cost;
  ASSERT_EQ(ir::describe(log.summarize({block(1), block(2)}, kUnit, cost)), "");
  EXPECT_EQ(cost.resultOrdinals, (std::vector<int32_t>{4, 1}));
  EXPECT_EQ(cost.temporary, Bytes(1024 + 1024));
  EXPECT_EQ(cost.allocations, 6);
}

TEST(AllocationLog, RefusesWhatCannotBePlanned) {
  const auto block = [](uintptr_t n) { return reinterpret_cast<const void*>(n); };
  ir::OpCost cost;
  AllocationLog kept;
  kept.addAllocation(block(1), Bytes(8), kMain);
  EXPECT_EQ(ir::describe(kept.summarize({}, kUnit, cost)),
            "keeps 8 bytes of temporaries after its call");
  AllocationLog elsewhere;
  elsewhere.addAllocation(block(1), Bytes(8), kOther);
  EXPECT_EQ(ir::describe(elsewhere.summarize({block(1)}, kUnit, cost)),
            "a result was not allocated by the thread that called the op");
}

}  // namespace
}  // namespace stowage::tests
