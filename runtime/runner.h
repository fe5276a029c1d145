// SPDX-License-Identifier: Apache-2.0
//
// Runs the steps of a captured training step by its plan: owns device, executor and state; takes
// the first values from the capture (live module, replayed construction, created optimizer state);
// feeds the step scalars; hands out what the step reports. The planner takes no part. Ownership:
// the CapturedStep, graph, schedule and target outlive the runner. While it lives, the state is in
// its arenas; storeTo gives it to the module again. Not here: planning, files.
#ifndef STOWAGE_RUNTIME_RUNNER_H_
#define STOWAGE_RUNTIME_RUNNER_H_

#include <ATen/core/Tensor.h>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLFunctionalExtras.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/cost_table.h"
#include "ir/error.h"
#include "ir/graph.h"
#include "ir/schedule.h"
#include "ir/target.h"
#include "runtime/capture/capture.h"

namespace stowage::runtime {

/// A plan as the runner needs it.
struct RunnablePlan {
  const ir::Graph& graph;        // in the plan's order
  const ir::Schedule& schedule;  // level kSynced, verified by the caller
  const ir::Target& target;
  const ir::NodeCosts* costs = nullptr;  // measured here; null: measured before the first step
};

struct RunnerOptions {
  /// CPU: copies take as long as the target's links would, for tests; else as fast as memory.
  bool throttleLinks = false;
  /// Where step scalars come from instead of re-tracing the step's own update; outlives the runner.
  ScalarFeed* feed = nullptr;
};

class Runner {
 public:
  /// Errors: kPlanMismatch (graph, target, threads, library versions), kOutOfDeviceMemory,
  /// kUnsupported.
  static ir::Expected<std::unique_ptr<Runner>> create(CapturedStep& captured,
                                                      const RunnablePlan& plan,
                                                      RunnerOptions options = {});
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runs one step on `inputs` (in the capture's order; shapes and dtypes as captured) and returns
  /// what `loss` reported: tensors of their own, on the CPU.
  ir::Expected<std::vector<at::Tensor>> step(llvm::ArrayRef<at::Tensor> inputs);

  /// Hands over the bytes of every persistent storage, in order of storage, after everything issued
  /// is done.
  using StateVisitor =
      llvm::function_ref<ir::Error(const ir::Storage&, llvm::ArrayRef<uint8_t> bytes)>;
  ir::Error visitState(StateVisitor visit);

  /// Gives the state back to the module and the optimizer. The runner takes no more steps.
  ir::Error storeTo();

  int64_t stepsDone() const;
  /// Bytes of the device arena: the budget.
  Bytes arenaBytes() const;
  /// All of the device arena, for tests that look at what was touched. Waits for everything issued.
  ir::Expected<llvm::MutableArrayRef<uint8_t>> deviceArena();

 private:
  struct Impl;
  explicit Runner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RUNNER_H_
