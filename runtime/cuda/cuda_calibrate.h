// SPDX-License-Identifier: Apache-2.0
//
// Measures what a graph's ops cost on this GPU. Work is the time of the device between two events;
// the device is kept busy before the first, so that launch overhead is no part of it. The time that
// the launch thread takes for the call is the launch overhead.
#ifndef STOWAGE_RUNTIME_CUDA_CUDA_CALIBRATE_H_
#define STOWAGE_RUNTIME_CUDA_CUDA_CALIBRATE_H_

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"
#include "ir/graph/graph.h"
#include "runtime/calibrate/calibrate.h"

namespace stowage::runtime {

/// Costs: time of `options.runs` + 2 calls per signature; device memory of the largest node's
/// operands and results. Errors: kUnsupported, kTorch or kOutOfDeviceMemory naming the node.
ir::Expected<ir::CostTable> calibrateCuda(const ir::Graph& graph, const CalibrateOptions& options);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_CUDA_CALIBRATE_H_
