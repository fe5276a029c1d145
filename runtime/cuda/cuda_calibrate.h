// SPDX-License-Identifier: Apache-2.0
//
// Measures what a graph's ops cost on this GPU, and what the links to it carry. Times are those of
// the device, between two events, with the device kept busy before the first so that launching is
// not measured; an op that takes longer to launch than to run counts with its launch, because the
// issuing thread is then what the step waits for.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_CALIBRATE_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_CALIBRATE_H_

#include "ir/cost_table.h"
#include "ir/error.h"
#include "ir/graph.h"
#include "runtime/calibrate.h"

namespace stowage::runtime {

/// Costs: time of `options.runs` + 2 calls per signature; device memory of the largest node's
/// operands and results. Errors: kUnsupported, kTorch or kOutOfDeviceMemory naming the node.
ir::Expected<ir::CostTable> calibrateCuda(const ir::Graph& graph, const CalibrateOptions& options);

/// Pinned copies of 256 MiB, each direction alone and both at once; the latency is that of a copy
/// of 512 bytes. Errors: kOutOfDeviceMemory, kCuda.
ir::Expected<ir::LinkModel> measureCudaLinks();

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_CALIBRATE_H_
