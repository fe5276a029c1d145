// SPDX-License-Identifier: Apache-2.0
//
// Trains on the CPU device and by op-by-op replay, and compares the persistent state and the
// outputs of every step byte for byte. State and inputs are numbers that depend on the storage's
// name, the step and the seed.
#ifndef STOWAGE_TESTS_SUPPORT_CPU_TRAINING_H_
#define STOWAGE_TESTS_SUPPORT_CPU_TRAINING_H_

#include <string>
#include <vector>

#include "runtime/cpu/cpu_device.h"
#include "runtime/executor/executor.h"

namespace stowage::tests {

struct CpuTrainingOptions {
  int steps = 3;
  uint64_t seed = 1;
  int64_t integersBelow = 4;  // inputs of integer types are in [0, this)
};

/// Numbers for a storage, by the type of its first value: floats in (-1, 1), integers below the
/// bound.
std::vector<uint8_t> makeNumbers(const ir::Graph& graph, ir::StorageId storage, int64_t step,
                                 const CpuTrainingOptions& options);

/// "" if the planned steps gave the replay's bytes; else the first difference or error. The feed is
/// replaced by one whose scalars differ in each step.
std::string compareWithReplay(runtime::Device& device, const runtime::PlanSource& plan,
                              const CpuTrainingOptions& options = {});

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_CPU_TRAINING_H_
