// SPDX-License-Identifier: Apache-2.0
//
// Measures what a graph's ops cost on this machine.
// Each distinct signature runs on tensors of the right types with valid values; its time, its
// temporaries and the ordinals of its results are recorded. Also measures the CPU device's links,
// which copy at memory bandwidth. An op is measured alone and warm: inside a step, cold caches and
// copies beside it may make it slower.
#ifndef STOWAGE_RUNTIME_CALIBRATE_CALIBRATE_H_
#define STOWAGE_RUNTIME_CALIBRATE_CALIBRATE_H_

#include <cstddef>
#include <functional>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"

namespace stowage::runtime {

/// Sums over the signatures that were timed. Far apart: something else ran on the machine.
struct TimeSpread {
  Nanoseconds shortest;
  Nanoseconds median;
};

/// An op that gave other bits for the same bits.
struct UnrepeatedOp {
  ir::NodeId node;
  int different = 0;  // runs whose bits were not those of the first
};

struct CalibrateOptions {
  ir::DeviceKind device = ir::DeviceKind::kCpu;
  int intraOpThreads = 1;
  int64_t alignBytes = 512;
  bool deterministic = true;  // as in the run: it decides what kernels allocate
  int runs = 10;              // timed runs per signature; the shortest counts
  /// Above 1: each signature is also run so often on the same numbers from the same random state,
  /// at other addresses and with copies under way; those whose bits differ go to `unrepeated`.
  int repeats = 0;
  std::vector<UnrepeatedOp>* unrepeated = nullptr;
  /// Rows that are there already are kept.
  ir::CostTable known;
  TimeSpread* spread = nullptr;  // added to, when given
  /// Called from another thread, one call at a time: so many distinct ops are done.
  std::function<void(size_t done, size_t all)> report;
};

/// What a table says of where and how it was measured (CostTable::device): "cpu, 2 threads",
/// "NVIDIA H200, driver 580.159.04, CUDA 13.0, cuDNN 9.19, nondeterministic" (the CUDA that the
/// driver can do).
/// Errors: those of the GPU library.
ir::Expected<std::string> costsDeviceHere(const ir::Target& target);
std::string cpuCostsDevice(int intraOpThreads, bool deterministic);
bool isCpuCostsDevice(const std::string& costsDevice);
/// The mode in such a text.
bool isOfDeterministicMode(const std::string& costsDevice);

/// On the CPU, or on the GPU that the process has (runtime/gpu/gpu_library.h). Costs: time of
/// `runs` + 2 calls per signature; memory of the largest node's operands. The state of the
/// process's random generator is as before. Errors: kUnsupported or kTorch naming the node that
/// cannot be measured.
ir::Expected<ir::CostTable> calibrate(const ir::Graph& graph, const CalibrateOptions& options);

/// What one thread copies within the host's memory: the best of five copies of 64 MiB.
BytesPerSecond measureHostMemory();

/// What copies between the device and the host of this machine carry. On the CPU, where both are
/// the same memory, both directions at once are taken to keep all of their rate. What lies between
/// ranks is `target`'s: one process alone cannot measure it. Errors: those of the GPU library.
ir::Expected<ir::LinkModel> measureLinks(const ir::Target& target);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CALIBRATE_CALIBRATE_H_
