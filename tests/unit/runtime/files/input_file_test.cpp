// SPDX-License-Identifier: Apache-2.0
//
// Inputs are regular files: what would wait or never end is refused at once, in every way to read.
#include "runtime/files/input_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/cpu/thread_trial.h"
#include "runtime/files/safetensors.h"
#include "tests/support/or_fail.h"
#include "tests/support/scratch_folder.h"

namespace stowage::runtime {
namespace {

using Reader = std::function<ir::Error(const std::string& path)>;

std::vector<Reader> readers() {
  return {[](const std::string& path) { return readInput(path).takeError(); },
          [](const std::string& path) { return mapInput(path).takeError(); },
          [](const std::string& path) { return openInput(path).takeError(); },
          [](const std::string& path) { return SafetensorsReader::open(path).takeError(); }};
}

void expectRefused(const std::string& path, const std::string& words) {
  for (const Reader& read : readers()) {
    const ir::PlanError error = ir::takePayload(read(path));
    EXPECT_EQ(error.code(), ir::ErrorCode::kIo);
    EXPECT_EQ(error.location().file, path);
    EXPECT_EQ(error.text(), words);
  }
}

// A read that waits ends the test by its time limit.
TEST(InputFile, RefusesWhatIsNoFile) {
  const tests::ScratchFolder folder("stowage_input");
  const std::string pipe = folder.at("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expectRefused(pipe, "is a pipe, expected a regular file");
  ASSERT_EQ(symlink(pipe.c_str(), folder.at("link").c_str()), 0);
  expectRefused(folder.at("link"), "is a pipe, expected a regular file");
  expectRefused(folder.at(""), "is a folder, expected a regular file");
  expectRefused("/dev/zero", "is a device, expected a regular file");
  expectRefused("/dev/null", "is a device, expected a regular file");
  expectRefused(folder.at("none"), "cannot be read: No such file or directory");

  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = folder.at("socket");
  ASSERT_LT(name.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  expectRefused(name, "is a socket, expected a regular file");
  close(listener);
}

TEST(InputFile, ReadsFilesAndLinksToThem) {
  const tests::ScratchFolder folder("stowage_input");
  const std::string text = std::string(3'000'000, 'a') + std::string("\0b", 2);
  tests::writeText(folder.at("file"), text);
  ASSERT_EQ(symlink("file", folder.at("link").c_str()), 0);
  for (const char* name : {"file", "link"}) {
    EXPECT_EQ(tests::orFail(readInput(folder.at(name))), text);
    EXPECT_EQ(tests::orFail(mapInput(folder.at(name)))->getBuffer(), text);
  }
  tests::writeText(folder.at("empty"), "");
  EXPECT_EQ(tests::orFail(readInput(folder.at("empty"))), "");
  EXPECT_EQ(tests::orFail(mapInput(folder.at("empty")))->getBufferSize(), 0U);
}

TEST(InputFile, ReadsNoMoreThanItMay) {
  const tests::ScratchFolder folder("stowage_input");
  tests::writeText(folder.at("file"), "12345678");
  EXPECT_EQ(tests::orFail(readInput(folder.at("file"), Bytes(8))), "12345678");
  const ir::PlanError large = ir::takePayload(readInput(folder.at("file"), Bytes(7)).takeError());
  EXPECT_EQ(large.text(), "has 8 B, expected at most 7 B");
  EXPECT_EQ(large.location().file, folder.at("file"));
  // What comes through an open descriptor has no size.
  const int zeros = open("/dev/zero", O_RDONLY);
  const ir::PlanError endless =
      ir::takePayload(readDescriptor(zeros, "standard input", Bytes(5'000'000)).takeError());
  EXPECT_EQ(endless.text().find("has more than "), 0U) << endless.text();
  close(zeros);
}

/// Ends the process with 0 when there is no room for so many stacks, and that is what it says.
[[noreturn]] void tryWithoutRoom() {
  const rlimit limit = {.rlim_cur = rlim_t{1} << 30, .rlim_max = rlim_t{1} << 30};
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(3);
  ir::Error error = checkThreads(1000);
  if (!error) _exit(2);
  const ir::PlanError refused = ir::takePayload(std::move(error));
  const bool isSaid = refused.text().find("more threads, expected 1000: ") != std::string::npos;
  _exit(refused.code() == ir::ErrorCode::kEnvironment && isSaid ? 0 : 1);
}

/// Ends the process with 0 when there is no room for so many buffers, and that is what it says.
[[noreturn]] void tryWithoutHeaps() {
  const rlimit limit = {.rlim_cur = rlim_t{1} << 30, .rlim_max = rlim_t{1} << 30};
  if (checkThreadMemory(16)) _exit(4);
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(3);
  ir::Error error = checkThreadMemory(16);
  if (!error) _exit(2);
  const ir::PlanError refused = ir::takePayload(std::move(error));
  const bool isSaid = refused.text().find("ops of 16 threads take beside") != std::string::npos;
  _exit(refused.code() == ir::ErrorCode::kEnvironment && isSaid ? 0 : 1);
}

TEST(ThreadTrial, StartsThreads) {
  EXPECT_FALSE(static_cast<bool>(checkThreads(8)));
  EXPECT_FALSE(static_cast<bool>(checkThreads(0)));
}

TEST(ThreadTrial, SaysWhereItCannot) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need the address space for themselves";
#endif
  EXPECT_EXIT(tryWithoutRoom(), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(tryWithoutHeaps(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace stowage::runtime
