// SPDX-License-Identifier: Apache-2.0
//
// Ranks find each other by libtorch's store: served by rank 0, or by the launcher that started this
// program (tests/python/test_torchrun.py does).
#include "runtime/launch/c10d_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/or_fail.h"

namespace stowage::runtime {
namespace {

using std::chrono::milliseconds;
using tests::orFail;

constexpr milliseconds kLong(20'000);
constexpr RankPatience kPatience{.join = kLong, .collective = kLong};

/// Every rank sends its number; "" if all came.
std::string gatherNumbers(Communicator& own) {
  std::vector<uint8_t> mine{static_cast<uint8_t>(own.rank())};
  std::vector<uint8_t> all(static_cast<size_t>(own.count()), 0xEE);
  if (ir::Error error = own.allGather(mine, all)) return ir::describe(std::move(error));
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != i) return "found " + std::to_string(all[i]) + " of rank " + std::to_string(i);
  }
  return "";
}

/// A port that was free a moment ago.
uint16_t findFreePort() { return orFail(listenAt("127.0.0.1")).port; }

TEST(C10dStore, LetsRanksFindEachOther) {
  const HostPort address{.host = "127.0.0.1", .port = findFreePort()};
  std::vector<std::unique_ptr<RankStore>> stores(3);
  std::vector<std::string> said(3, "nothing");
  std::vector<std::thread> threads;
  threads.reserve(stores.size());
  for (int32_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      const auto at = static_cast<size_t>(i);
      const LaunchedRank launched{.rank = i, .count = 3, .store = address, .keys = "a/"};
      ir::Expected<std::unique_ptr<RankStore>> store = openStore(launched, kLong);
      if (!store) {
        said[at] = ir::describe(store.takeError());
        return;
      }
      stores[at] = std::move(*store);
      ir::Expected<std::unique_ptr<Communicator>> own =
          joinLaunchedRanks(launched, *stores[at], kPatience);
      said[at] = own ? gatherNumbers(**own) : ir::describe(own.takeError());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(said, std::vector<std::string>(3, ""));
}

TEST(C10dStore, KeepsTheKeysOfTwoStartsApart) {
  const HostPort address{.host = "127.0.0.1", .port = findFreePort()};
  LaunchedRank launched{.rank = 0, .count = 1, .store = address, .keys = "a/"};
  const std::unique_ptr<RankStore> first = orFail(openStore(launched, kLong));
  launched.keys = "b/";
  launched.isStoreServed = true;  // by the first
  const std::unique_ptr<RankStore> second = orFail(openStore(launched, milliseconds(300)));
  orFail(first->set("where", "here"));
  EXPECT_EQ(orFail(first->get("where")), "here");
  ir::Expected<std::string> found = second->get("where");
  ASSERT_FALSE(found);
  const std::string said = ir::describe(found.takeError());
  EXPECT_EQ(said.rfind("the launcher's store at '127.0.0.1' port ", 0), 0U) << said;
  EXPECT_NE(said.find("key 'where'"), std::string::npos) << said;
}

TEST(C10dStore, SaysWhereNobodyServesIt) {
  const LaunchedRank launched{
      .rank = 1, .count = 2, .store = {.host = "127.0.0.1", .port = findFreePort()}, .keys = "a/"};
  ir::Expected<std::unique_ptr<RankStore>> store = openStore(launched, milliseconds(1500));
  ASSERT_FALSE(store);
  const std::string said = ir::describe(store.takeError());
  EXPECT_EQ(said.rfind("the launcher's store at '127.0.0.1' port ", 0), 0U) << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
}

TEST(UnderALauncher, JoinsTheOtherRanks) {
  const std::optional<LaunchedRank> launched = orFail(launchedRank());
  if (!launched) GTEST_SKIP() << "no launcher started this program";
  const std::unique_ptr<RankStore> store = orFail(openStore(*launched, kLong));
  const std::unique_ptr<Communicator> own = orFail(joinLaunchedRanks(*launched, *store, kPatience));
  EXPECT_EQ(gatherNumbers(*own), "");
}

}  // namespace
}  // namespace stowage::runtime
