// SPDX-License-Identifier: Apache-2.0
//
// One line on stderr for what takes longer than a second: only when a terminal watches and nobody
// asked for quiet. It is erased when the object is destroyed.
#ifndef STOWAGE_TOOLS_CLI_PROGRESS_H_
#define STOWAGE_TOOLS_CLI_PROGRESS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "ir/base/units.h"

namespace stowage::tools {

/// For work that says how far it is.
class Progress {
 public:
  explicit Progress(bool enabled);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// At most ten times a second: a slow terminal is not to hold up a step.
  void show(const std::string& line);
  /// "measuring ops  12 of 96"
  void show(const char* what, size_t done, size_t all);

 private:
  bool enabled_;
  bool shown_ = false;
  int64_t startedNs_;
  int64_t shownNs_ = 0;
};

/// "pinning host memory  4.00 GiB of 60.00 GiB": what pinning calls; `progress` outlives it.
std::function<void(Bytes done, Bytes all)> showPinning(Progress& progress);

/// For work that does not: what it is, and the seconds it has taken. Nothing else may write to
/// stderr meanwhile.
class Waiting {
 public:
  Waiting(bool enabled, std::string what);
  ~Waiting();
  /// Shown after what it is, from the next second on.
  void setNews(std::string news);
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  void tick();

  Progress progress_;
  std::string what_;
  std::string news_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread ticker_;  // only if it would show something
};

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_CLI_PROGRESS_H_
