// SPDX-License-Identifier: Apache-2.0
#include "tools/run/rank_processes.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/launch/c10d_store.h"
#include "runtime/launch/launched_rank.h"
#include "tools/cli/stop_signal.h"
#include "tools/files/whole_file.h"

namespace stowage::tools {

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks{20};
/// What ranks have, after one has failed, to say what they saw of it.
constexpr std::chrono::seconds kToEnd{10};
constexpr int kCannotStart = 127;

ir::Error environmentError(std::string text) {
  return ir::makeError(ir::ErrorCode::kEnvironment, std::move(text));
}

/// Of words that end with a zero byte.
std::vector<std::string> splitWords(const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::vector<char*> pointersTo(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environmentOf(int32_t rank, int32_t count, uint16_t port) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!runtime::isLaunchVariable(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  for (std::string& own : runtime::variablesOf(rank, count, port)) {
    variables.push_back(std::move(own));
  }
  return variables;
}

/// Returns in this process. Between fork and exec nothing is called that may allocate.
pid_t startProcess(std::vector<std::string>& words, std::vector<std::string> variables) {
  const std::vector<char*> arguments = pointersTo(words);
  const std::vector<char*> environment = pointersTo(variables);
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process != 0) return process;
  // A terminal's signals come once, from the parent, and not at all when it is gone.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() == parent) ::execve("/proc/self/exe", arguments.data(), environment.data());
  ::_exit(kCannotStart);
}

class Ranks {
 public:
  ~Ranks() { kill(SIGKILL); }

  ir::Error start(int32_t count, uint16_t port) {
    ir::Expected<std::string> line = readWholeFile("/proc/self/cmdline");
    if (!line) return line.takeError();
    std::vector<std::string> words = splitWords(*line);
    for (int32_t rank = 0; rank < count; ++rank) {
      const pid_t process = startProcess(words, environmentOf(rank, count, port));
      if (process < 0) {
        return environmentError("rank " + std::to_string(rank) +
                                " cannot be started: " + std::strerror(errno));
      }
      processes_.push_back(process);
    }
    return ir::success();
  }

  /// Until none is left.
  ir::Expected<int> wait() {
    while (running() > 0) {
      look();
      if (firstFailed_ && !endsAt_) endsAt_ = steady_clock::now() + kToEnd;
      if (endsAt_ && steady_clock::now() > *endsAt_ && !wereEnded_) {
        wereEnded_ = true;
        kill(SIGKILL);
      }
      passOnStop();
      std::this_thread::sleep_for(kBetweenLooks);
    }
    if (!firstFailed_) return 0;
    const std::string rank = "rank " + std::to_string(firstFailed_->first);
    const int status = firstFailed_->second;
    if (WIFSIGNALED(status)) {
      return environmentError(rank + " was ended by signal " + std::to_string(WTERMSIG(status)) +
                              " (" + ::strsignal(WTERMSIG(status)) + ")");
    }
    if (WEXITSTATUS(status) == kCannotStart) return environmentError(rank + " cannot be started");
    return WEXITSTATUS(status);
  }

 private:
  size_t running() const {
    size_t count = 0;
    for (const pid_t process : processes_) count += process > 0 ? 1 : 0;
    return count;
  }
  void look() {
    for (size_t i = 0; i < processes_.size(); ++i) {
      int status = 0;
      if (processes_[i] <= 0 || ::waitpid(processes_[i], &status, WNOHANG) != processes_[i]) {
        continue;
      }
      processes_[i] = 0;
      const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
      if (failed && !firstFailed_) firstFailed_ = {i, status};
    }
  }
  void passOnStop() {
    if (stopSignal() == 0 || wasStopped_) return;
    wasStopped_ = true;
    kill(stopSignal());
  }
  void kill(int signal) const {
    for (const pid_t process : processes_) {
      if (process > 0) ::kill(process, signal);
    }
  }

  std::vector<pid_t> processes_;                       // by rank; 0: has ended
  std::optional<std::pair<size_t, int>> firstFailed_;  // rank and status
  std::optional<steady_clock::time_point> endsAt_;
  bool wereEnded_ = false;
  bool wasStopped_ = false;
};

}  // namespace

ir::Expected<int> runRanks(int64_t count) {
  catchStopSignals();
  ir::Expected<std::unique_ptr<runtime::ServedStore>> store = runtime::serveStore();
  if (!store) return store.takeError();
  Ranks ranks;
  if (ir::Error error = ranks.start(static_cast<int32_t>(count), (*store)->port())) return error;
  return ranks.wait();
}

}  // namespace stowage::tools
