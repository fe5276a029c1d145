// SPDX-License-Identifier: Apache-2.0
//
// Runs a list of passes over a state. Before the first pass and after every pass the graph's
// invariants are checked (ir/graph/check_graph.h), or, once there is a schedule, the schedule is
// verified at its level (ir/verify/verify.h), so a pass that breaks something is named at once.
// Builds with assertions also compare what a pass reports as `changed` with what it did. On failure
// the error carries a reproducer: the IR before the failing pass and the pipeline that fails, in
// one text for stowage-opt. The manager prints nothing and reads no clock: an observer does.
#ifndef STOWAGE_PASSES_MANAGE_PASS_MANAGER_H_
#define STOWAGE_PASSES_MANAGE_PASS_MANAGER_H_

#include <memory>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "passes/manage/pass.h"

namespace stowage::passes {

/// What callers want to see of a run: progress, timings, the IR after each change.
class PassObserver {
 public:
  virtual ~PassObserver() = default;
  virtual void beforePass(const Pass& /*pass*/, const PassState& /*state*/) {}
  /// Called when the pass and the check after it succeeded.
  virtual void afterPass(const Pass& /*pass*/, const PassReport& /*report*/,
                         const PassState& /*state*/) {}
};

struct PassRecord {
  std::string pass;
  PassReport report;
};

class PassManager {
 public:
  explicit PassManager(std::vector<std::unique_ptr<Pass>> passes) : passes_(std::move(passes)) {}

  /// One record per pass, in order. The state is left as the last pass that succeeded made it.
  /// Errors: those of the passes; kInvalidIr or kViolation "failed after NAME" when a check after a
  /// pass fails; kInvalidArgument when a pass does not find the level it needs. The error's
  /// attachment is the reproducer.
  ir::Expected<std::vector<PassRecord>> run(PassState& state,
                                            PassObserver* observer = nullptr) const;
  /// The pipeline text that gives this list.
  std::string text() const;

 private:
  ir::Expected<PassReport> runOne(size_t index, PassState& state) const;
  std::string makeReproducer(size_t failing, const PassState& before) const;

  std::vector<std::unique_ptr<Pass>> passes_;
};

/// "name" or "name{options}".
std::string passText(const Pass& pass);

/// The first line of a reproducer; the pipeline follows it on the same line.
inline constexpr const char* kReproducerPrefix = "// passes: ";

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_MANAGE_PASS_MANAGER_H_
