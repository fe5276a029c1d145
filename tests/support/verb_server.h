// SPDX-License-Identifier: Apache-2.0
//
// Runs `stowage` hundreds of times without starting it as often: libverb_server.so is preloaded
// into the program, waits for orders where main would begin, and forks a child that calls main for
// each. Loading libtorch takes 0.3 s or more, a fork some milliseconds. The parent has one thread
// and never runs an op, so that a child is as fresh as a program that was just started.
// Each child has limits of time, memory and file size; what it prints goes to a file.
#ifndef STOWAGE_TESTS_SUPPORT_VERB_SERVER_H_
#define STOWAGE_TESTS_SUPPORT_VERB_SERVER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stowage::tests {

/// The environment variable that holds the two file descriptors: "orders,answers".
inline constexpr const char* kServerVariable = "STOWAGE_VERB_SERVER";

/// Behind the name of the file that a verb prints to: where it tells which files it changed outside
/// of its folder (tests/support/write_watch.h).
inline constexpr const char* kStrays = ".strays";

/// What a child does instead of a verb, named by its first argument: what the caller must notice.
inline constexpr const char* kFaultHeap = "--fault-heap";      // writes behind a block of the heap
inline constexpr const char* kFaultHang = "--fault-hang";      // never ends
inline constexpr const char* kFaultCrash = "--fault-crash";    // reads through a null pointer
inline constexpr const char* kFaultWrite = "--fault-write";    // writes to ../outside
inline constexpr const char* kFaultBug = "--fault-bug";        // exits with 70
inline constexpr const char* kFaultEscape = "--fault-escape";  // prints a terminal's sequence
inline constexpr const char* kFaultNoPlace = "--fault-no-place";  // exits with 3, and a bare word
inline constexpr const char* kFaultLeave = "--fault-leave";       // exits with 3, and leaves a file

/// Sent before the text of an order: folder, then the arguments, each with its zero byte.
struct OrderHead {
  uint32_t textBytes = 0;
  int32_t arguments = 0;
  int32_t timeoutMs = 0;
  int64_t memoryBytes = 0;  // of address space, above what the program has at its start
  int64_t fileBytes = 0;
};

struct AnswerHead {
  int32_t status = 0;  // as waitpid gives it
  int32_t timedOut = 0;
  int32_t elapsedMs = 0;
};

/// How a verb ended.
struct VerbEnd {
  int code = -1;   // exit code; -1: none
  int signal = 0;  // that ended it
  bool timedOut = false;
  int elapsedMs = 0;
  std::string text;    // standard output and error
  std::string strays;  // paths outside of its folder that it changed or tried to, a line each
};

struct VerbLimits {
  int timeoutMs = 20'000;
  int64_t memoryBytes = int64_t{6} << 30;
  int64_t fileBytes = int64_t{256} << 20;
};

class VerbServer {
 public:
  /// Starts `program`. `home` becomes HOME, `temporary` TMPDIR. The heap is guarded: glibc's checks
  /// with bytes behind each block, and freed bytes overwritten. Ends the test program on failure.
  VerbServer(const std::string& program, const std::string& preload, const std::string& home,
             const std::string& temporary);
  ~VerbServer();
  VerbServer(const VerbServer&) = delete;
  VerbServer& operator=(const VerbServer&) = delete;

  /// `folder` becomes the current one.
  VerbEnd run(const std::string& folder, const std::vector<std::string>& arguments,
              const VerbLimits& limits = {});
  /// Whether glibc's checks of the heap are on; they need libc_malloc_debug.so.0.
  bool guardsHeap() const { return guardsHeap_; }

 private:
  pid_t process_ = -1;
  int orders_ = -1;
  int answers_ = -1;
  bool guardsHeap_ = false;
  std::string output_;  // the file that verbs print to
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_VERB_SERVER_H_
