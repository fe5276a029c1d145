// SPDX-License-Identifier: Apache-2.0
//
// Measures the calls of a graph, one signature at a time: operands of the right types with valid
// numbers, a call to warm up, a call whose allocations are logged, calls that are timed. What is
// measured is one op alone, warm. A bench says where operands lie and how a call is timed: one for
// the CPU (runtime/calibrate), one for a GPU (runtime/cuda).
#ifndef STOWAGE_RUNTIME_CALIBRATE_OP_MEASUREMENT_H_
#define STOWAGE_RUNTIME_CALIBRATE_OP_MEASUREMENT_H_

#include <llvm/ADT/STLFunctionalExtras.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "runtime/calibrate/calibrate.h"
#include "runtime/calibrate/valid_values.h"
#include "runtime/torch/bound_tensors.h"
#include "runtime/torch/op_call.h"
#include "runtime/torch/served_allocator.h"

namespace stowage::runtime {

inline Nanoseconds since(std::chrono::steady_clock::time_point begin) {
  const auto now = std::chrono::steady_clock::now();
  return Nanoseconds(std::chrono::duration_cast<std::chrono::nanoseconds>(now - begin).count());
}

/// Which numbers an operand holds.
struct OperandFill {
  ir::DType dtype = ir::DType::kF32;
  IntegerRange integers;
  uint64_t seed = 0;
};

struct CallTime {
  Nanoseconds work;    // of the device
  Nanoseconds launch;  // of the calling thread, where that is not the work itself
};

/// The machine's side of a measurement.
class OpBench {
 public:
  virtual ~OpBench() = default;
  /// Operands of the next node. `home`: kDevice or kHost. What was placed before is no longer used.
  virtual void clear() = 0;
  virtual ir::Expected<uint8_t*> place(ir::Space home, Bytes bytes) = 0;
  virtual ir::Error fill(ir::Space home, uint8_t* at, Bytes bytes, const OperandFill& fill) = 0;
  /// Runs the call once; how long it took.
  virtual ir::Expected<CallTime> time(const std::string& name, llvm::function_ref<void()> call) = 0;
  /// Copies that run while the next call does, on other memory.
  virtual ir::Error disturb() { return ir::success(); }
  /// An op that failed leaves the device unusable.
  virtual bool isLostAfterAnError() const { return false; }
  /// What the calling thread allocates from while a call runs.
  virtual AllocationSource& allocations() = 0;
};

/// Fills the table's gaps for `graph`; `options.report` and `options.spread` as said there. Errors:
/// kUnsupported or kTorch naming the node that cannot be measured, the latter for an op that
/// accepts none of the values that are tried.
ir::Error measureOps(const ir::Graph& graph, const CalibrateOptions& options, c10::Device device,
                     OpBench& bench, ir::CostTable& table);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CALIBRATE_OP_MEASUREMENT_H_
