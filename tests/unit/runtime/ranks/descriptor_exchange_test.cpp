// SPDX-License-Identifier: Apache-2.0
//
// Every rank gets the files of all others, or no rank gets any. Connections of strangers change
// nothing, and no descriptor stays open.
#include "runtime/ranks/descriptor_exchange.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <llvm/ADT/StringExtras.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ranks/local_ranks.h"
#include "runtime/ranks/socket_ranks.h"
#include "tests/support/folder_store.h"
#include "tests/support/or_fail.h"
#include "tests/support/scratch_folder.h"

namespace stowage::runtime {
namespace {

using tests::orFail;
using Outcome = std::optional<RankDescriptors>;

constexpr std::chrono::seconds kLong(20);
constexpr size_t kFiles = 2;
constexpr size_t kTokenBytes = 16;

std::string textOf(size_t rank, size_t file) {
  return "file " + std::to_string(file) + " of rank " + std::to_string(rank);
}

Descriptor makeFile(const std::string& text) {
  Descriptor file(::memfd_create("exchanged", MFD_CLOEXEC));
  EXPECT_EQ(::pwrite(file.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return file;
}

std::string readFile(const Descriptor& file) {
  std::string text(100, '\0');
  const ssize_t bytes = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  return text;
}

std::vector<Descriptor> makeFiles(size_t rank, size_t count = kFiles) {
  std::vector<Descriptor> files;
  for (size_t i = 0; i < count; ++i) files.push_back(makeFile(textOf(rank, i)));
  return files;
}

std::vector<int> numbersOf(const std::vector<Descriptor>& files) {
  std::vector<int> numbers;
  numbers.reserve(files.size());
  for (const Descriptor& file : files) numbers.push_back(file.get());
  return numbers;
}

Outcome exchangeFiles(Communicator& own, size_t files = kFiles) {
  const std::vector<Descriptor> mine = makeFiles(static_cast<size_t>(own.rank()), files);
  return orFail(exchangeDescriptors(own, numbersOf(mine)));
}

/// "" if `found` is all that rank `own` of `count` can get.
std::string findFault(const Outcome& found, size_t own, size_t count) {
  if (!found) return "got nothing";
  if (found->size() != count) return "got those of " + std::to_string(found->size()) + " ranks";
  for (size_t rank = 0; rank < count; ++rank) {
    const std::vector<Descriptor>& files = (*found)[rank];
    if (files.size() != (rank == own ? 0 : kFiles)) return "got another number of descriptors";
    for (size_t i = 0; i < files.size(); ++i) {
      if (readFile(files[i]) != textOf(rank, i)) return "read '" + readFile(files[i]) + "'";
      const int flags = ::fcntl(files[i].get(), F_GETFD);
      if (flags < 0 || (flags & FD_CLOEXEC) == 0) return "got one that stays open in exec";
    }
  }
  return "";
}

using Work = std::function<Outcome(Communicator&)>;

/// By rank.
std::vector<Outcome> runOnRanks(int32_t count, const Work& work) {
  const auto ranks = makeLocalRanks(count, kLong);
  std::vector<std::future<Outcome>> running;
  running.reserve(ranks.size());
  for (const auto& rank : ranks) {
    running.push_back(std::async(std::launch::async, [&] { return work(*rank); }));
  }
  std::vector<Outcome> outcomes;
  outcomes.reserve(running.size());
  for (std::future<Outcome>& one : running) outcomes.push_back(one.get());
  return outcomes;
}

size_t countOpen() {
  const std::filesystem::directory_iterator begin("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin, std::filesystem::directory_iterator()));
}

/// Nothing stays open, in whatever way a test ends.
class DescriptorExchangeTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(countOpen(), before_); }

 private:
  size_t before_ = countOpen();
};

TEST_F(DescriptorExchangeTest, GivesEachRankTheFilesOfAllOthers) {
  for (const int32_t count : {1, 2, 3, 8}) {
    const std::vector<Outcome> outcomes =
        runOnRanks(count, [](Communicator& own) { return exchangeFiles(own); });
    for (size_t i = 0; i < outcomes.size(); ++i) {
      EXPECT_EQ(findFault(outcomes[i], i, outcomes.size()), "") << "rank " << i << " of " << count;
    }
  }
}

TEST_F(DescriptorExchangeTest, WorksBetweenProcesses) {
  constexpr int32_t kRanks = 3;
  const tests::ScratchFolder folder("exchange");
  std::vector<pid_t> children;
  for (int32_t i = 0; i < kRanks; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      tests::FolderStore store(folder.at(""));
      const std::unique_ptr<Communicator> own = orFail(
          joinRanks({.rank = i, .count = kRanks}, store, {.join = kLong, .collective = kLong}));
      const std::string fault = findFault(exchangeFiles(*own), static_cast<size_t>(i), kRanks);
      tests::writeText(folder.at("fault" + std::to_string(i)), fault);
      _exit(0);
    }
    children.push_back(child);
  }
  for (size_t i = 0; i < children.size(); ++i) {
    int status = -1;
    waitpid(children[i], &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(tests::readText(folder.at("fault" + std::to_string(i))), "");
  }
}

TEST_F(DescriptorExchangeTest, GivesEmptyListsWhereNobodyHasAny) {
  for (const Outcome& outcome :
       runOnRanks(3, [](Communicator& own) { return exchangeFiles(own, 0); })) {
    ASSERT_TRUE(outcome);
    for (const std::vector<Descriptor>& files : *outcome) EXPECT_TRUE(files.empty());
    EXPECT_EQ(outcome->size(), 3);
  }
}

TEST_F(DescriptorExchangeTest, GivesNobodyAnythingWhenADescriptorIsInvalid) {
  for (const Outcome& outcome : runOnRanks(3, [](Communicator& own) {
         const std::vector<Descriptor> mine = makeFiles(static_cast<size_t>(own.rank()));
         std::vector<int> numbers = numbersOf(mine);
         if (own.rank() == 1) numbers.back() = -1;
         return orFail(exchangeDescriptors(own, numbers));
       })) {
    EXPECT_FALSE(outcome);
  }
}

TEST_F(DescriptorExchangeTest, GivesNobodyAnythingWhenRanksHaveDifferentNumbers) {
  for (const size_t files : {1, 3}) {
    for (const Outcome& outcome : runOnRanks(3, [files](Communicator& own) {
           return exchangeFiles(own, own.rank() == 1 ? files : kFiles);
         })) {
      EXPECT_FALSE(outcome);
    }
  }
}

TEST_F(DescriptorExchangeTest, GivesNobodyAnythingBeyondTheLimitOfAMessage) {
  const std::vector<Descriptor> file = makeFiles(0, 1);
  for (const size_t count : {253, 254}) {
    for (const Outcome& outcome : runOnRanks(2, [&](Communicator& own) {
           return orFail(exchangeDescriptors(own, std::vector<int>(count, file[0].get())));
         })) {
      EXPECT_EQ(outcome.has_value(), count == 253);
    }
  }
}

TEST_F(DescriptorExchangeTest, FailsWhenARankIsGone) {
  auto ranks = makeLocalRanks(2, kLong);
  ranks.pop_back();
  auto outcome = exchangeDescriptors(*ranks[0], {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(ir::takePayload(outcome.takeError()).code(), ir::ErrorCode::kEnvironment);
}

/// May act on what an allGather has gathered, and change it.
using AfterGather = std::function<void(int64_t number, std::vector<uint8_t>& all)>;

class WatchedRank : public Communicator {
 public:
  WatchedRank(Communicator& inner, AfterGather afterGather)
      : Communicator(inner.rank(), inner.count()),
        inner_(inner),
        afterGather_(std::move(afterGather)) {}

  bool isAnyOver() override { return inner_.isAnyOver(); }

 protected:
  ir::Error exchange(const Collective& collective, llvm::ArrayRef<llvm::ArrayRef<uint8_t>> toRanks,
                     llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> fromRanks) override {
    const llvm::ArrayRef<uint8_t> own = toRanks.front();
    std::vector<uint8_t> all(own.size() * fromRanks.size());
    if (ir::Error error = inner_.allGather(own, all)) return error;
    afterGather_(collective.number, all);
    for (size_t i = 0; i < fromRanks.size(); ++i) {
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(i * own.size()), own.size(),
                  fromRanks[i].begin());
    }
    return ir::success();
  }
  void tellOthers(const std::string& reason) override { inner_.giveUp(reason); }

 private:
  Communicator& inner_;
  AfterGather afterGather_;
};

TEST_F(DescriptorExchangeTest, GivesNobodyAnythingWhenARankCannotReachAnother) {
  for (const Outcome& outcome : runOnRanks(3, [](Communicator& own) {
         WatchedRank watched(own, [&](int64_t number, std::vector<uint8_t>& all) {
           if (number == 0 && own.rank() == 0) all.back() ^= 1;  // as if it were on another host
         });
         return exchangeFiles(watched);
       })) {
    EXPECT_FALSE(outcome);
  }
}

TEST_F(DescriptorExchangeTest, GivesNobodyAnythingWhenARankCannotListen) {
  for (const Outcome& outcome : runOnRanks(3, [](Communicator& own) {
         WatchedRank watched(own, [](int64_t number, std::vector<uint8_t>& all) {
           EXPECT_EQ(number, 0);
           std::fill(all.end() - kTokenBytes, all.end(), uint8_t{0});
         });
         return exchangeFiles(watched);
       })) {
    EXPECT_FALSE(outcome);
  }
}

/// A stranger's connection to a rank whose `token` somebody told. It stays open.
Descriptor speakTo(llvm::ArrayRef<uint8_t> token, const std::string& text,
                   const std::vector<int>& descriptors) {
  const std::string name = '\0' + ("stowage-" + llvm::toHex(token, /*LowerCase=*/true));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path);
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
            0);
  iovec part{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  std::vector<uint8_t> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size() * sizeof(int));
  }
  if (!text.empty()) {
    EXPECT_EQ(::sendmsg(socket.get(), &message, 0), static_cast<ssize_t>(text.size()));
  }
  return socket;
}

std::string bytesOf(int32_t rank) {
  return std::string(reinterpret_cast<const char*>(&rank), sizeof(rank));
}

/// Strangers are in the queues before any rank sends.
TEST_F(DescriptorExchangeTest, IgnoresStrangers) {
  std::vector<Descriptor> strangers;
  const std::vector<Descriptor> files = makeFiles(9, kFiles + 20);
  const std::vector<int> numbers = numbersOf(files);
  const std::vector<int> none, one{numbers[0]}, right(numbers.begin(), numbers.begin() + kFiles);
  const auto comeTo = [&](llvm::ArrayRef<uint8_t> token, int32_t rank) {
    strangers.push_back(speakTo(token, "", none));
    strangers.push_back(speakTo(token, "GET / HTTP/1.1\r\n", none));
    const std::string other = bytesOf((rank + 1) % 3);
    strangers.push_back(speakTo(token, other + "a", right));
    strangers.push_back(speakTo(token, other.substr(0, 1), right));
    for (const int32_t wrong : {-1, 3, 0x7FFFFFFF, rank}) {
      strangers.push_back(speakTo(token, bytesOf(wrong), right));
    }
    for (const std::vector<int>& some : {none, one, numbers}) {
      strangers.push_back(speakTo(token, other, some));
    }
  };
  const std::vector<Outcome> outcomes = runOnRanks(3, [&](Communicator& own) {
    WatchedRank watched(own, [&](int64_t number, std::vector<uint8_t>& all) {
      if (number != 0) return;
      const llvm::ArrayRef<uint8_t> tokens(all);
      for (int32_t i = 0; i < 3 && own.rank() == 0; ++i) {
        comeTo(tokens.slice(static_cast<size_t>(i) * kTokenBytes, kTokenBytes), i);
      }
      orFail(own.agree("the strangers", 1));
    });
    return exchangeFiles(watched);
  });
  for (size_t i = 0; i < outcomes.size(); ++i) EXPECT_EQ(findFault(outcomes[i], i, 3), "");
}

}  // namespace
}  // namespace stowage::runtime
