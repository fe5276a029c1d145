// SPDX-License-Identifier: Apache-2.0
//
// Step scalars from the user's own code: each step, `update` is traced once more on tensors without
// memory, on a thread of its own, while the device works on the step. In checked steps `loss` is
// traced, too, and all that it does is compared with the plan, with the values that the running
// step reads. One thread runs the code of all steps, between `begin` and `join` alone, with the
// caller's settings of libtorch (autocast, grad mode).
// Not here: what is compared (capture/retrace.cpp).
#ifndef STOWAGE_RUNTIME_RUNNER_RETRACE_FEED_H_
#define STOWAGE_RUNTIME_RUNNER_RETRACE_FEED_H_

#include <array>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <mutex>
#include <optional>
#include <vector>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "runtime/executor/scalar_feed.h"
#include "runtime/executor/stream_queue.h"
#include "runtime/runner/runnable_step.h"
#include "runtime/runner/step_match.h"

namespace stowage::runtime {

/// Which steps are compared with the code that they were captured from.
struct CheckedSteps {
  int64_t first = 16;  // so many from the runner's first on
  int64_t every = 1;   // then every n-th; 0: none at all
  bool contains(int64_t step) const { return every > 0 && (step < first || step % every == 0); }
};

class RetraceFeed : public ScalarFeed {
 public:
  /// `captured` and `match` outlive the feed. A step whose code reads values is always checked,
  /// unless none is.
  RetraceFeed(RunnableStep& captured, const StepMatch& match, CheckedSteps checked);
  ~RetraceFeed() override;

  /// Are there values that the step's code reads, to be compared in each step?
  bool checksReads() const { return checked_.every > 0 && !read_.empty(); }
  /// The captured step answered for so many steps before the feed's first: those of a checkpoint.
  void skip(int64_t steps) { stepsBefore_ = steps; }
  /// The next step is traced before anything of it is enqueued. Not where its code reads values
  /// that only the running step knows.
  void traceFirst(bool first) { first_ = first && read_.empty(); }
  bool comesFirst() const override { return first_; }
  bool checksStep(int64_t step) const override;
  void begin(int64_t step) override;
  llvm::ArrayRef<ir::StorageId> wanted() const override { return wanted_; }
  void tell(size_t index, std::optional<llvm::ArrayRef<uint8_t>> bytes) override;
  ir::Expected<llvm::ArrayRef<ScalarValue>> join() override;
  /// What that thread takes in a step: the median of the last eight (the first four steps of a
  /// capture are not traced again); nothing before there were as many.
  std::optional<Nanoseconds> typicalTime() const;

 private:
  struct Answer {
    std::vector<ScalarValue> values;
    Nanoseconds took;
    std::optional<ir::PlanError> error;
  };
  /// A value that the step reads: unknown yet, known, or known to come too late.
  struct Told {
    bool isOver = false;
    std::optional<c10::Scalar> value;
  };

  /// Not in the steps that ran during a capture of hidden host state.
  bool comparesStep(int64_t step) const;
  Answer retrace(int64_t step);
  std::optional<c10::Scalar> valueOfRead(size_t read);
  /// No more values come: whoever waits for one goes on without.
  void endTelling();
  void noteUnchecked(int64_t step, ir::PlanError& error) const;

  RunnableStep& captured_;
  std::vector<ir::ScalarId> order_;
  CheckedSteps checked_;
  std::vector<ir::ValueId> read_;      // by read of the captured step
  std::vector<ir::StorageId> wanted_;  // the plan's
  std::vector<size_t> readOf_;         // by wanted_
  std::future<Answer> pending_;
  std::vector<ScalarValue> values_;
  std::array<Nanoseconds, 8> took_;  // of the last steps joined, by step modulo 8
  size_t joined_ = 0;
  int64_t stepsBefore_ = 0;
  int64_t lastChecked_ = -1;
  bool first_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Told> told_;  // by read

  StreamQueue thread_;  // last: it uses the others
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RUNNER_RETRACE_FEED_H_
