// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are processes: killed at any moment, late, absent, or strangers.
#include "runtime/ranks/socket_ranks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/folder_store.h"
#include "tests/support/or_fail.h"
#include "tests/support/random.h"
#include "tests/support/scratch_folder.h"

namespace stowage::runtime {
namespace {

using std::chrono::milliseconds;
using tests::orFail;

constexpr milliseconds kLong(20'000);
constexpr int32_t kRanks = 3;

/// Gathers until something is wrong, and writes what. Never returns.
[[noreturn]] void gatherForever(const tests::ScratchFolder& folder, int32_t rank) {
  tests::FolderStore store(folder.at(""));
  std::string said;
  ir::Expected<std::unique_ptr<Communicator>> own =
      joinRanks({.rank = rank, .count = kRanks}, store, {.join = kLong, .collective = kLong});
  if (!own) said = ir::describe(own.takeError());
  orFail(store.set("joined/" + std::to_string(rank), ""));
  std::vector<uint8_t> mine(100'000), all(mine.size() * kRanks);
  while (said.empty()) said = ir::describe((*own)->allGather(mine, all));
  tests::writeText(folder.at("said" + std::to_string(rank)), said);
  _exit(0);
}

TEST(SocketRanks, EndWhenOneOfThemIsKilled) {
  tests::Random random(7);
  for (int round = 0; round < 12; ++round) {
    const tests::ScratchFolder folder("killed");
    std::vector<pid_t> ranks;
    for (int32_t i = 0; i < kRanks; ++i) {
      const pid_t child = fork();
      if (child == 0) gatherForever(folder, i);
      ranks.push_back(child);
    }
    tests::FolderStore store(folder.at(""));
    for (int32_t i = 0; i < kRanks; ++i) {
      (void)orFail(store.get("joined/" + std::to_string(i)));
    }
    std::this_thread::sleep_for(milliseconds(random.between(0, 60)));
    const auto victim = static_cast<size_t>(random.between(0, kRanks - 1));
    kill(ranks[victim], SIGKILL);
    const Clock::time_point begin = Clock::now();
    for (const pid_t rank : ranks) waitpid(rank, nullptr, 0);
    EXPECT_LT(Clock::now() - begin, kLong);
    for (size_t i = 0; i < kRanks; ++i) {
      if (i == victim) continue;
      const std::string said = tests::readText(folder.at("said" + std::to_string(i)));
      const std::string gone = "rank " + std::to_string(victim) + " is gone";
      EXPECT_NE(said.find(gone), std::string::npos) << "round " << round << ": " << said;
    }
  }
}

TEST(SocketRanks, NameThoseThatDoNotCome) {
  const tests::ScratchFolder folder("absent");
  tests::FolderStore store(folder.at(""));
  ir::Expected<std::unique_ptr<Communicator>> own =
      joinRanks({.rank = 0, .count = 3}, store, {.join = milliseconds(200), .collective = kLong});
  ASSERT_FALSE(own);
  EXPECT_NE(ir::describe(own.takeError())
                .find("rank 0 of 3 waited 0 s for the ranks 1, 2, which did not come"),
            std::string::npos);
}

TEST(SocketRanks, RefuseARankThatIsNone) {
  const tests::ScratchFolder folder("none");
  tests::FolderStore store(folder.at(""));
  ir::Expected<std::unique_ptr<Communicator>> own = joinRanks({.rank = 3, .count = 3}, store);
  ASSERT_FALSE(own);
  EXPECT_EQ(ir::describe(own.takeError()), "found rank 3 of 3 ranks, expected 0 to count - 1");
}

TEST(SocketRanks, LeaveStrangersAlone) {
  const tests::ScratchFolder folder("strangers");
  std::unique_ptr<Communicator> first;
  std::thread rank0([&] {
    tests::FolderStore store(folder.at(""));
    first = orFail(joinRanks({.rank = 0, .count = 2}, store, {.join = kLong, .collective = kLong}));
  });
  tests::FolderStore store(folder.at(""));
  const std::string entry = orFail(store.get("stowage/rank/0"));
  const size_t space = entry.find(' ');
  const HostPort address{.host = entry.substr(0, space),
                         .port = static_cast<uint16_t>(std::stoi(entry.substr(space + 1)))};
  const auto say = [&](const std::string& text) {
    Socket stranger = orFail(connectTo(address, Clock::now() + kLong));
    const llvm::ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    orFail(sendAll(stranger, bytes, Clock::now() + kLong));
    return stranger;
  };
  const std::string token = entry.substr(entry.rfind(' ') + 1);
  const std::string rank1("\1\0\0\0", 4), rank5("\5\0\0\0", 4);
  (void)say("GET / HTTP/1.1\r\nHost: somebody.who.is.lost\r\n\r\n");
  (void)say(std::string(32, 'a') + rank1);
  (void)say(token + rank5);
  (void)say("short");
  std::unique_ptr<Communicator> second =
      orFail(joinRanks({.rank = 1, .count = 2}, store, {.join = kLong, .collective = kLong}));
  rank0.join();
  std::string said;
  std::thread other([&] { said = ir::describe(first->agree("the plan", 5)); });
  EXPECT_EQ(ir::describe(second->agree("the plan", 5)), "");
  other.join();
  EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace stowage::runtime
