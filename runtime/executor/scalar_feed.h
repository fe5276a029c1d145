// SPDX-License-Identifier: Apache-2.0
//
// Where the host numbers of a step come from (learning rate, bias corrections): the graph knows in
// which arguments they stand, never their value in a later step. Behind this interface the capture
// side runs the user's own optimizer again on tensors without memory, on a thread of its own, while
// the device works on the step.
// A feed may also check that the step is still the one that the graph is of, with values that the
// running step reads on the host.
// Order of calls, all from the launch thread: begin(s), tell() for each wanted storage, then
// join() at most once, before the first command that updates the model. A step that fails before
// that is ended by the next begin or by the feed's destruction.
#ifndef STOWAGE_RUNTIME_EXECUTOR_SCALAR_FEED_H_
#define STOWAGE_RUNTIME_EXECUTOR_SCALAR_FEED_H_

#include <llvm/ADT/ArrayRef.h>

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::runtime {

/// A step scalar's value in one step. `isInteger` agrees with the graph's StepScalar.
struct ScalarValue {
  bool isInteger = false;
  double value = 0;
  int64_t integer = 0;
  /// Bit for bit.
  friend bool operator==(const ScalarValue& a, const ScalarValue& b) {
    return a.isInteger == b.isInteger && a.integer == b.integer &&
           std::bit_cast<uint64_t>(a.value) == std::bit_cast<uint64_t>(b.value);
  }
};

class ScalarFeed {
 public:
  virtual ~ScalarFeed() = default;
  /// Is step `step` checked against the code that it was captured from, so that it may be refused
  /// after commands of it were enqueued? Asked before begin.
  virtual bool checksStep(int64_t /*step*/) const { return false; }
  /// Starts to work out the values of step `step` (0-based); returns at once.
  virtual void begin(int64_t step) = 0;
  /// Is the step that began to be joined before anything of it is enqueued? An error of `join` then
  /// refuses that step alone, and another may follow.
  virtual bool comesFirst() const { return false; }
  /// Outputs of the graph whose bytes the feed can use before it is joined.
  virtual llvm::ArrayRef<ir::StorageId> wanted() const { return {}; }
  /// The bytes of `wanted()[index]` in this step, valid for the call; nothing: they come too late.
  virtual void tell(size_t /*index*/, std::optional<llvm::ArrayRef<uint8_t>> /*bytes*/) {}
  /// Waits for them. Indexed by ScalarId; valid until the next begin. Errors: kUnsupported when the
  /// update is no longer the captured one (another op, another structure).
  virtual ir::Expected<llvm::ArrayRef<ScalarValue>> join() = 0;
};

/// The values as captured, in every step: for graphs that come without the code that made them.
class CapturedScalars : public ScalarFeed {
 public:
  explicit CapturedScalars(const ir::Graph& graph) {
    for (const ir::StepScalar& scalar : graph.scalars()) {
      values_.push_back({scalar.isInteger, scalar.value, scalar.integer});
    }
  }
  void begin(int64_t /*step*/) override {}
  ir::Expected<llvm::ArrayRef<ScalarValue>> join() override {
    return llvm::ArrayRef<ScalarValue>(values_);
  }

 private:
  std::vector<ScalarValue> values_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_EXECUTOR_SCALAR_FEED_H_
