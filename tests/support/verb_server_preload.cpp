// SPDX-License-Identifier: Apache-2.0
//
// The half of tests/support/verb_server.h that lies inside the program.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "tests/support/verb_server.h"
#include "tests/support/write_watch.h"

namespace stowage::tests {
namespace {

using Main = int (*)(int, char**, char**);
Main realMain = nullptr;

bool readAll(int fd, void* into, size_t bytes) {
  auto* at = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t n = ::read(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

int64_t nowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

int64_t mappedBytes() {
  long pages = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld", &pages) != 1) std::abort();
  std::fclose(file);
  return static_cast<int64_t>(pages) * sysconf(_SC_PAGESIZE);
}

void limit(__rlimit_resource_t what, int64_t most) {
  const rlimit both = {static_cast<rlim_t>(most), static_cast<rlim_t>(most)};
  if (setrlimit(what, &both) != 0) std::abort();
}

/// Keeps the compiler from seeing through the faults.
template <typename T>
T* hide(T* pointer) {
  __asm__ volatile("" : "+r"(pointer));
  return pointer;
}

void commitFault(const char* name) {
  if (std::strcmp(name, kFaultHeap) == 0) {
    char* block = hide(static_cast<char*>(std::malloc(40)));
    std::memset(block, 7, 41);
    std::free(hide(block));
    std::exit(0);
  }
  if (std::strcmp(name, kFaultHang) == 0) {
    for (;;) pause();
  }
  if (std::strcmp(name, kFaultCrash) == 0) *hide(static_cast<volatile char*>(nullptr)) = 1;
  if (std::strcmp(name, kFaultWrite) == 0) {
    std::exit(::open("../outside/stray", O_CREAT | O_WRONLY, 0600) < 0 ? 1 : 0);
  }
  if (std::strcmp(name, kFaultBug) == 0) std::exit(70);
  if (std::strcmp(name, kFaultEscape) == 0) {
    std::printf("\x1b[2J");
    std::exit(0);
  }
  if (std::strcmp(name, kFaultNoPlace) == 0) {
    std::printf("error: bad\n");
    std::exit(3);
  }
  if (std::strcmp(name, kFaultLeave) == 0) {
    std::printf("error: half_a_file: bad\n");
    std::exit(::open("half_a_file", O_CREAT | O_WRONLY, 0600) < 0 ? 1 : 3);
  }
}

[[noreturn]] void runChild(const OrderHead& head, std::vector<char>& text, char** environment) {
  setpgid(0, 0);
  const char* folder = text.data();
  const char* output = folder + std::strlen(folder) + 1;
  std::vector<char*> arguments = {const_cast<char*>("stowage")};
  char* next = const_cast<char*>(output) + std::strlen(output) + 1;
  for (int i = 0; i < head.arguments; ++i) {
    arguments.push_back(next);
    next += std::strlen(next) + 1;
  }
  arguments.push_back(nullptr);
  const int file = ::open(output, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  const int none = ::open("/dev/null", O_RDONLY);
  if (file < 0 || none < 0 || ::chdir(folder) != 0) std::abort();
  dup2(none, STDIN_FILENO);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  closefrom(STDERR_FILENO + 1);
  watchWrites({folder, std::getenv("TMPDIR")}, std::string(output) + kStrays);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, head.fileBytes);
  limit(RLIMIT_AS, mappedBytes() + head.memoryBytes);
  if (head.arguments > 0) commitFault(arguments[1]);
  std::exit(realMain(head.arguments + 1, arguments.data(), environment));
}

/// Time on a processor, of all threads.
int64_t usedMs(pid_t process) {
  clockid_t clock = 0;
  timespec used{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<int64_t>(used.tv_sec) * 1000 + used.tv_nsec / 1'000'000;
}

/// Whether it ended. On a machine that others use too, time passes and work does not: what works
/// gets up to five times as long, until it worked for as long as it may.
bool endsInTime(pid_t child, int handle, int timeoutMs) {
  constexpr int kRounds = 5;
  int64_t used = 0;
  for (int round = 0; round < kRounds; ++round) {
    pollfd ended = {.fd = handle, .events = POLLIN, .revents = 0};
    int ready = 0;
    do {
      ready = poll(&ended, 1, timeoutMs);
    } while (ready < 0 && errno == EINTR);
    if (ready > 0) return true;
    const int64_t now = usedMs(child);
    if (now >= timeoutMs || now - used < timeoutMs / 20) return false;
    used = now;
  }
  return false;
}

AnswerHead waitFor(pid_t child, int timeoutMs) {
  AnswerHead answer;
  const int64_t begin = nowMs();
  const auto handle = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (handle < 0) std::abort();
  const bool ended = endsInTime(child, handle, timeoutMs);
  close(handle);
  answer.timedOut = ended ? 0 : 1;
  // What it started must not outlive it either.
  if (!ended) kill(child, SIGKILL);
  while (waitpid(child, &answer.status, 0) < 0 && errno == EINTR) {
  }
  kill(-child, SIGKILL);
  answer.elapsedMs = static_cast<int32_t>(nowMs() - begin);
  return answer;
}

int serve(int argc, char** argv, char** environment) {
  const char* handles = std::getenv(kServerVariable);
  int orders = -1;
  int answers = -1;
  if (handles == nullptr || std::sscanf(handles, "%d,%d", &orders, &answers) != 2) {
    return realMain(argc, argv, environment);
  }
  for (;;) {
    OrderHead head;
    if (!readAll(orders, &head, sizeof(head))) return 0;
    std::vector<char> text(head.textBytes);
    if (!readAll(orders, text.data(), text.size())) return 0;
    const pid_t child = fork();
    if (child < 0) std::abort();
    if (child == 0) runChild(head, text, environment);
    const AnswerHead answer = waitFor(child, head.timeoutMs);
    if (::write(answers, &answer, sizeof(answer)) != sizeof(answer)) return 0;
  }
}

}  // namespace
}  // namespace stowage::tests

// glibc's entry, which calls main: the one place that every program passes.
extern "C" int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                                 void (*init)(), void (*fini)(), void (*loaderFini)(),
                                 void* stackEnd) {
  using Start =
      int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  auto start = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
  stowage::tests::realMain = main;
  return start(stowage::tests::serve, argc, argv, init, fini, loaderFini, stackEnd);
}
