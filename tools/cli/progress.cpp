// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/progress.h"

#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "ir/base/printable.h"

namespace stowage::tools {

namespace {

constexpr int64_t kDelayNs = 1'000'000'000;
constexpr int64_t kIntervalNs = 100'000'000;

int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool isWatched() { return ::isatty(STDERR_FILENO) != 0 && std::getenv("CI") == nullptr; }

}  // namespace

Progress::Progress(bool enabled) : enabled_(enabled && isWatched()), startedNs_(nowNs()) {}

Progress::~Progress() {
  if (shown_) llvm::errs() << "\r\033[K";
}

void Progress::show(const std::string& line) {
  if (!enabled_) return;
  const int64_t now = nowNs();
  if (now - startedNs_ < kDelayNs || now - shownNs_ < kIntervalNs) return;
  shownNs_ = now;
  llvm::errs() << '\r' << ir::printable(line) << "\033[K";
  shown_ = true;
}

void Progress::show(const char* what, size_t done, size_t all) {
  show(fmt::format("{}  {} of {}", what, done, all));
}

std::function<void(Bytes done, Bytes all)> showPinning(Progress& progress) {
  return [&progress](Bytes done, Bytes all) {
    progress.show(
        fmt::format("pinning host memory  {} of {}", formatBytes(done), formatBytes(all)));
  };
}

Waiting::Waiting(bool enabled, std::string what) : progress_(enabled), what_(std::move(what)) {
  if (enabled && isWatched()) ticker_ = std::thread([this] { tick(); });
}

Waiting::~Waiting() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  if (ticker_.joinable()) ticker_.join();
}

void Waiting::setNews(std::string news) {
  const std::lock_guard<std::mutex> lock(mutex_);
  news_ = std::move(news);
}

void Waiting::tick() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (int second = 1;; ++second) {
    if (changed_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) return;
    progress_.show(fmt::format("{}  {} s{}", what_, second, news_));
  }
}

}  // namespace stowage::tools
