// SPDX-License-Identifier: Apache-2.0
//
// Whatever the transport: every rank has what the others sent it, and no rank goes on when one is
// gone, silent, elsewhere, or gives up.
#include "runtime/ranks/communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/ranks/local_ranks.h"
#include "runtime/ranks/shard_bytes.h"
#include "runtime/ranks/socket_ranks.h"
#include "tests/support/folder_store.h"
#include "tests/support/or_fail.h"
#include "tests/support/random.h"
#include "tests/support/scratch_folder.h"

namespace stowage::runtime {
namespace {

using Bytes = std::vector<uint8_t>;
using Ranks = std::vector<std::unique_ptr<Communicator>>;
using std::chrono::milliseconds;

constexpr milliseconds kLong(20'000);

Ranks joinBySockets(int32_t count, milliseconds patience) {
  const tests::ScratchFolder folder("ranks");
  Ranks ranks(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  threads.reserve(ranks.size());
  for (int32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      tests::FolderStore store(folder.at(""));
      ir::Expected<std::unique_ptr<Communicator>> made =
          joinRanks({.rank = i, .count = count}, store, {.join = kLong, .collective = patience});
      if (made) ranks[static_cast<size_t>(i)] = std::move(*made);
      if (!made) ADD_FAILURE() << ir::describe(made.takeError());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

enum class Transport { kLocal, kSockets };

Ranks makeRanks(Transport transport, int32_t count, milliseconds patience = kLong) {
  return transport == Transport::kLocal ? makeLocalRanks(count, patience)
                                        : joinBySockets(count, patience);
}

using Work = std::function<ir::Error(Communicator&)>;

/// "" where it went well, by rank.
std::vector<std::string> runAll(Ranks& ranks, const Work& work) {
  std::vector<std::string> said(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] { said[i] = ir::describe(work(*ranks[i])); });
  }
  for (std::thread& thread : threads) thread.join();
  return said;
}

/// What rank `from` has for rank `to`, of all collectives the same length.
Bytes bytesOf(int32_t from, int32_t to, int64_t bytes, uint64_t seed) {
  tests::Random random(seed * 1000 + static_cast<uint64_t>(from) * 30 + static_cast<uint64_t>(to));
  Bytes all(static_cast<size_t>(bytes));
  for (uint8_t& byte : all) byte = static_cast<uint8_t>(random.bits());
  return all;
}

void append(Bytes& all, const Bytes& part) { all.insert(all.end(), part.begin(), part.end()); }

class CommunicatorTest : public testing::TestWithParam<Transport> {};

INSTANTIATE_TEST_SUITE_P(Ranks, CommunicatorTest,
                         testing::Values(Transport::kLocal, Transport::kSockets),
                         [](const auto& info) {
                           return info.param == Transport::kLocal ? "Local" : "Sockets";
                         });

TEST_P(CommunicatorTest, GathersFromAllAndSendsToAll) {
  for (int32_t count = 1; count <= 5; ++count) {
    Ranks ranks = makeRanks(GetParam(), count);
    for (const std::string& said : runAll(ranks, [count](Communicator& own) -> ir::Error {
           for (const int64_t bytes : {0, 1, 24, 4097, 3'000'001}) {
             Bytes parts, fromAll, toMe;
             for (int32_t i = 0; i < count; ++i) {
               append(parts, bytesOf(own.rank(), i, bytes, 1));
               append(fromAll, bytesOf(i, 0, bytes, 1));
               append(toMe, bytesOf(i, own.rank(), bytes, 1));
             }
             Bytes found(parts.size(), 0xEE);
             const Bytes first(parts.begin(), parts.begin() + bytes);
             if (ir::Error error = own.allGather(first, found)) return error;
             EXPECT_TRUE(found == fromAll) << count << " ranks, " << bytes << " bytes";
             found.assign(parts.size(), 0xEE);
             if (ir::Error error = own.allToAll(parts, found)) return error;
             EXPECT_TRUE(found == toMe) << count << " ranks, " << bytes << " bytes";
           }
           return ir::success();
         })) {
      EXPECT_EQ(said, "");
    }
  }
}

TEST_P(CommunicatorTest, KeepsItsBytesWhenRanksRunAhead) {
  Ranks ranks = makeRanks(GetParam(), 3);
  for (const std::string& said : runAll(ranks, [](Communicator& own) -> ir::Error {
         tests::Random random(static_cast<uint64_t>(own.rank()));
         for (int64_t i = 0; i < 300; ++i) {
           if (random.chance(10)) std::this_thread::sleep_for(milliseconds(1));
           Bytes mine = bytesOf(own.rank(), 0, i, static_cast<uint64_t>(i));
           Bytes all(mine.size() * 3), expected;
           for (int32_t r = 0; r < 3; ++r)
             append(expected, bytesOf(r, 0, i, static_cast<uint64_t>(i)));
           if (ir::Error error = own.allGather(mine, all)) return error;
           std::fill(mine.begin(), mine.end(), 0);  // nobody reads it any more
           EXPECT_TRUE(all == expected) << i;
         }
         return ir::success();
       })) {
    EXPECT_EQ(said, "");
  }
}

TEST_P(CommunicatorTest, EndsAllRanksWhenOneIsElsewhere) {
  for (const bool otherKind : {true, false}) {
    Ranks ranks = makeRanks(GetParam(), 3);
    const std::vector<std::string> said = runAll(ranks, [&](Communicator& own) {
      const bool isOther = own.rank() == 1;
      Bytes mine(isOther && !otherKind ? 48 : 24), all(3 * mine.size());
      return isOther && otherKind ? own.allToAll(Bytes(72), all) : own.allGather(mine, all);
    });
    for (size_t i = 0; i < said.size(); ++i) EXPECT_NE(said[i], "") << i;
    const std::string theirs = otherKind ? "all_to_all of 24" : "all_gather of 48";
    EXPECT_NE(said[0].find(theirs + " bytes a rank), this rank in collective 0 (all_gather of 24"),
              std::string::npos)
        << said[0];
  }
}

TEST_P(CommunicatorTest, NamesTheRankThatIsGone) {
  Ranks ranks = makeRanks(GetParam(), 3);
  const std::vector<std::string> said = runAll(ranks, [](Communicator& own) -> ir::Error {
    Bytes mine(8), all(24);
    if (ir::Error error = own.allGather(mine, all)) return error;
    return ir::success();
  });
  EXPECT_EQ(said, std::vector<std::string>(3, ""));
  ranks.pop_back();
  for (const std::string& one : runAll(ranks, [](Communicator& own) {
         Bytes mine(8), all(24);
         return own.allGather(mine, all);
       })) {
    EXPECT_NE(one.find("rank 2 is gone"), std::string::npos) << one;
    EXPECT_NE(one.find("in collective 1 (all_gather of 8 bytes a rank)"), std::string::npos) << one;
  }
}

TEST_P(CommunicatorTest, SeesWithoutWaitingThatARankIsOver) {
  for (const bool givesUp : {true, false}) {
    Ranks ranks = makeRanks(GetParam(), 2);
    EXPECT_EQ(runAll(ranks, [](Communicator& own) { return own.agree("a number", 7); }),
              std::vector<std::string>(2, ""));
    EXPECT_FALSE(ranks[0]->isAnyOver() || ranks[1]->isAnyOver());
    givesUp ? ranks[1]->giveUp("a reason") : ranks.pop_back();
    EXPECT_TRUE(ranks[0]->isAnyOver());
    const std::string said = ir::describe(ranks[0]->agree("a number", 7));
    EXPECT_NE(said.find(givesUp ? "rank 1 gave up (a reason)" : "rank 1 is gone"),
              std::string::npos)
        << said;
  }
}

TEST_P(CommunicatorTest, PutsShardsTogether) {
  for (const int64_t bytes : {0, 1, 255, 256, 257, 700, 768}) {
    Ranks ranks = makeRanks(GetParam(), 3);
    const Bytes whole = bytesOf(0, 0, bytes, 5);
    EXPECT_EQ(runAll(ranks,
                     [&](Communicator& own) -> ir::Error {
                       Bytes shard(256, 0xEE), joined(whole.size());
                       cutShard(whole, own.rank(), shard);
                       for (size_t i = 0; i < shard.size(); ++i) {
                         const size_t place = static_cast<size_t>(own.rank()) * 256 + i;
                         EXPECT_EQ(shard[i], place < whole.size() ? whole[place] : 0) << place;
                       }
                       if (ir::Error error = joinShards(own, shard, joined)) return error;
                       EXPECT_TRUE(joined == whole) << bytes;
                       return ir::success();
                     }),
              std::vector<std::string>(3, ""));
  }
}

TEST_P(CommunicatorTest, TakesWhatTheFirstHas) {
  Ranks ranks = makeRanks(GetParam(), 3);
  EXPECT_EQ(runAll(ranks,
                   [](Communicator& own) -> ir::Error {
                     const Bytes mine = bytesOf(own.rank(), 0, 100 * own.rank() + 50, 9);
                     ir::Expected<Bytes> first = takeFromFirst(own, mine);
                     if (!first) return first.takeError();
                     EXPECT_TRUE(*first == bytesOf(0, 0, 50, 9));
                     return ir::success();
                   }),
            std::vector<std::string>(3, ""));
}

TEST_P(CommunicatorTest, NamesTheRankThatIsSilent) {
  Ranks ranks = makeRanks(GetParam(), 3, milliseconds(400));
  const std::vector<std::string> said = runAll(ranks, [](Communicator& own) -> ir::Error {
    if (own.rank() == 1) return ir::success();
    Bytes mine(8), all(24);
    return own.allGather(mine, all);
  });
  for (const size_t other : {0U, 2U}) {
    EXPECT_NE(said[other].find("rank 1 is silent"), std::string::npos) << said[other];
  }
}

TEST_P(CommunicatorTest, TellsTheOthersWhyARankGivesUp) {
  Ranks ranks = makeRanks(GetParam(), 3);
  const std::vector<std::string> said = runAll(ranks, [](Communicator& own) {
    if (own.rank() == 1) own.giveUp("its disk is full");
    Bytes mine(5), all(15);
    return own.allGather(mine, all);
  });
  EXPECT_EQ(said[1], "this rank gave up: its disk is full");
  for (const size_t other : {0U, 2U}) {
    EXPECT_NE(said[other].find("its disk is full"), std::string::npos) << said[other];
    EXPECT_NE(said[other].find("rank 1 gave up"), std::string::npos) << said[other];
  }
}

TEST_P(CommunicatorTest, FailsAgainAfterAnError) {
  Ranks ranks = makeRanks(GetParam(), 2);
  ranks.pop_back();
  Bytes mine(5), all(10);
  const std::string first = ir::describe(ranks[0]->allGather(mine, all));
  EXPECT_NE(first, "");
  EXPECT_EQ(ir::describe(ranks[0]->allToAll(all, all)), first);
  EXPECT_EQ(ir::describe(ranks[0]->agree("the plan", 1)), first);
}

TEST_P(CommunicatorTest, AgreesOnANumberOrSaysWhoHasAnother) {
  Ranks ranks = makeRanks(GetParam(), 3);
  const auto agree = [](uint64_t others) {
    return [others](Communicator& own) {
      return own.agree("the plan", own.rank() == 2 ? others : 0xABCDEF0123456789);
    };
  };
  EXPECT_EQ(runAll(ranks, agree(0xABCDEF0123456789)), std::vector<std::string>(3, ""));
  for (const std::string& one : runAll(ranks, agree(0xBBCDEF0123456789))) {
    EXPECT_EQ(one,
              "the plan of rank 2 is another one (bbcdef0123456789), expected that of rank 0 "
              "(abcdef0123456789)");
  }
}

TEST_P(CommunicatorTest, RanksThatAgreeOnDifferentThingsAreTold) {
  Ranks ranks = makeRanks(GetParam(), 2);
  // The same number, so nothing else would tell them apart.
  for (const std::string& one : runAll(ranks, [](Communicator& own) {
         return own.agree(own.rank() == 0 ? "a digest of the checkpoint" : "the number of steps",
                          0);
       })) {
    EXPECT_EQ(one,
              "rank 1 is at the number of steps, expected a digest of the checkpoint, where rank 0 "
              "is");
  }
}

TEST_P(CommunicatorTest, CountsAreSaidAsCounts) {
  Ranks ranks = makeRanks(GetParam(), 2);
  const auto said = runAll(ranks, [](Communicator& own) {
    return own.agree("the number of steps", own.rank() == 0 ? 25 : UINT64_MAX);
  });
  EXPECT_EQ(said[0],
            "the number of steps of rank 1 is another one (none), expected that of rank 0 (25)");
}

TEST_P(CommunicatorTest, AllKnowWhetherItIsSoOnAll) {
  for (const int32_t other : {-1, 0, 2}) {
    Ranks ranks = makeRanks(GetParam(), 3);
    EXPECT_EQ(runAll(ranks,
                     [&](Communicator& own) -> ir::Error {
                       ir::Expected<bool> all = own.isOnAll(own.rank() != other);
                       if (!all) return all.takeError();
                       EXPECT_EQ(*all, other < 0);
                       return ir::success();
                     }),
              std::vector<std::string>(3, ""));
  }
}

TEST_P(CommunicatorTest, RefusesWrongSizesAndGoesOn) {
  Ranks ranks = makeRanks(GetParam(), 2);
  for (const std::string& said : runAll(ranks, [](Communicator& own) -> ir::Error {
         Bytes mine(4), all(8), other(7);
         EXPECT_EQ(ir::describe(own.allGather(mine, other)),
                   "all_gather into: found 7 bytes, expected 8");
         EXPECT_EQ(ir::describe(own.allToAll(other, other)),
                   "all_to_all of: found 7 bytes, expected 6");
         EXPECT_EQ(ir::describe(own.allToAll(all, other)),
                   "all_to_all into: found 7 bytes, expected 8");
         return own.allGather(mine, all);
       })) {
    EXPECT_EQ(said, "");
  }
}

TEST(Collective, IsReadAsItWasWritten) {
  const Collective one{
      .kind = CollectiveKind::kAllToAll, .number = 1LL << 40, .bytes = 12345678901};
  CollectiveHead head = writeHead(one);
  EXPECT_EQ(readHead(head), one);
  for (const size_t at : {0U, 4U, 15U, 23U}) {
    CollectiveHead broken = head;
    broken[at] ^= 0x80;
    EXPECT_EQ(readHead(broken), std::nullopt) << at;
  }
}

}  // namespace
}  // namespace stowage::runtime
