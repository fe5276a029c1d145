// SPDX-License-Identifier: Apache-2.0
#include "tests/support/verb_server.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "tests/support/scratch_folder.h"

namespace stowage::tests {

namespace {

constexpr const char* kHeapGuard = "libc_malloc_debug.so.0";

bool hasHeapGuard() {
  for (const char* folder : {"/lib/x86_64-linux-gnu/", "/lib64/", "/usr/lib64/", "/usr/lib/"}) {
    if (std::filesystem::exists(std::string(folder) + kHeapGuard)) return true;
  }
  return false;
}

std::array<int, 2> makePipe() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("cannot make a pipe");
  return ends;
}

void writeAll(int fd, const void* from, size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t n = ::write(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw std::runtime_error("the server of verbs has ended");
    at += n;
    bytes -= static_cast<size_t>(n);
  }
}

}  // namespace

VerbServer::VerbServer(const std::string& program, const std::string& preload,
                       const std::string& home, const std::string& temporary)
    : guardsHeap_(hasHeapGuard()), output_(temporary + "/printed") {
  std::signal(SIGPIPE, SIG_IGN);
  const auto orders = makePipe();
  const auto answers = makePipe();
  const std::string handles = std::to_string(orders[0]) + "," + std::to_string(answers[1]);
  const std::string libraries = guardsHeap_ ? std::string(kHeapGuard) + " " + preload : preload;
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("cannot fork");
  if (process_ == 0) {
    ::close(orders[1]);
    ::close(answers[0]);
    std::signal(SIGPIPE, SIG_DFL);
    setenv(kServerVariable, handles.c_str(), 1);
    setenv("LD_PRELOAD", libraries.c_str(), 1);
    setenv("GLIBC_TUNABLES", "glibc.malloc.check=3:glibc.malloc.perturb=165", 1);
    setenv("HOME", home.c_str(), 1);
    setenv("TMPDIR", temporary.c_str(), 1);
    execl(program.c_str(), program.c_str(), nullptr);
    _exit(127);
  }
  ::close(orders[0]);
  ::close(answers[1]);
  orders_ = orders[1];
  answers_ = answers[0];
  // Other servers that this test starts must not keep these open.
  fcntl(orders_, F_SETFD, FD_CLOEXEC);
  fcntl(answers_, F_SETFD, FD_CLOEXEC);
}

VerbServer::~VerbServer() {
  ::close(orders_);
  ::close(answers_);
  waitpid(process_, nullptr, 0);
}

VerbEnd VerbServer::run(const std::string& folder, const std::vector<std::string>& arguments,
                        const VerbLimits& limits) {
  std::string text;
  for (const std::string& part : {folder, output_}) text += part + '\0';
  for (const std::string& argument : arguments) text += argument + '\0';
  const OrderHead head = {.textBytes = static_cast<uint32_t>(text.size()),
                          .arguments = static_cast<int32_t>(arguments.size()),
                          .timeoutMs = limits.timeoutMs,
                          .memoryBytes = limits.memoryBytes,
                          .fileBytes = limits.fileBytes};
  writeAll(orders_, &head, sizeof(head));
  writeAll(orders_, text.data(), text.size());
  AnswerHead answer;
  ssize_t n = 0;
  do {
    n = ::read(answers_, &answer, sizeof(answer));
  } while (n < 0 && errno == EINTR);
  if (n != sizeof(answer)) throw std::runtime_error("the server of verbs has ended");
  VerbEnd end;
  end.timedOut = answer.timedOut != 0;
  end.elapsedMs = answer.elapsedMs;
  if (WIFEXITED(answer.status)) end.code = WEXITSTATUS(answer.status);
  if (WIFSIGNALED(answer.status)) end.signal = WTERMSIG(answer.status);
  end.text = readText(output_);
  end.strays = readText(output_ + kStrays);
  return end;
}

}  // namespace stowage::tests
