// SPDX-License-Identifier: Apache-2.0
//
// Launches the run commands of one plan: binds the operands' storages to their residencies, puts
// the step scalars in, serves the op's allocations from the plan, calls the op below autograd, and
// checks that every result lies where the plan says with the type that the graph says. Nothing is
// ever copied on the device to make that true: a result elsewhere is an error.
// Shared by the devices that run libtorch's ops; the device decides on which thread and stream.
// A launcher is one stream's, and one thread launches.
#ifndef STOWAGE_RUNTIME_TORCH_LAUNCHER_H_
#define STOWAGE_RUNTIME_TORCH_LAUNCHER_H_

#include <llvm/ADT/ArrayRef.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "ir/base/error.h"
#include "runtime/executor/device.h"
#include "runtime/memory/step_allocator.h"
#include "runtime/torch/bound_tensors.h"
#include "runtime/torch/op_call.h"
#include "runtime/torch/rng_keeper.h"
#include "runtime/torch/served_allocator.h"

namespace stowage::runtime {

/// First bytes of a device's arenas.
struct ArenaBases {
  uint8_t* device = nullptr;
  uint8_t* host = nullptr;
};

class Launcher {
 public:
  /// Prepares every run command of the stream. `device`: where its ops run. Errors: kUnsupported,
  /// kInvalidIr or kPlanMismatch naming the node.
  static ir::Expected<std::unique_ptr<Launcher>> make(const ProgramSource& source,
                                                      ir::Stream stream, c10::Device device,
                                                      ArenaBases bases,
                                                      std::unique_ptr<RngKeeper> rng);
  /// Runs a command to its end. `allocator` serves it through `allocations`.
  ir::Error launch(ir::CommandId command, llvm::ArrayRef<ScalarValue> scalars,
                   StepAllocator& allocator, AllocationSource& allocations);

 private:
  struct ExpectedResult {
    ir::ValueId value;  // invalid: undefined
    uint8_t* address = nullptr;
    bool onHost = false;  // in a slot of its own
  };
  struct PreparedLaunch {
    int32_t call = -1;  // in calls_; -1: not a run command
    std::vector<std::pair<ir::StorageId, uint8_t*>> binds;
    LaunchPlacement placement;
    std::vector<ExpectedResult> results;
  };

  Launcher(const ProgramSource& source, ArenaBases bases, BoundTensors tensors,
           std::unique_ptr<RngKeeper> rng);
  ir::Error prepare(ir::Stream stream);
  void makeHostSlots();
  ir::Error prepareLaunch(ir::CommandId command);
  ir::Expected<int32_t> findCall(const ir::Command& command);
  void bindOperands(const ir::Command& command, PreparedLaunch& prepared);
  void noteOperand(ir::ResidencyId residency, LaunchPlacement& placement) const;
  std::vector<int32_t> findOrdinals(ir::NodeId node, size_t results) const;
  ir::Error placeResults(const ir::Command& command, PreparedLaunch& prepared);
  uint8_t* address(ir::ResidencyId residency);
  ir::Error callOp(const PreparedLaunch& prepared, llvm::ArrayRef<ScalarValue> scalars,
                   std::vector<c10::IValue>& stack);
  ir::Error checkResults(ir::NodeId node, const PreparedLaunch& prepared,
                         const std::vector<c10::IValue>& stack);

  ProgramSource source_;
  ArenaBases bases_;
  BoundTensors tensors_;
  std::unique_ptr<RngKeeper> rng_;
  std::vector<OpCall> calls_;
  std::vector<std::array<int32_t, 2>> callOfNode_;  // as it is, in replay form; -1: not made yet
  std::vector<PreparedLaunch> launches_;            // by command
  std::vector<std::vector<uint8_t>> hostSlots_;     // by residency; empty: it lies in an arena
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_LAUNCHER_H_
