// SPDX-License-Identifier: Apache-2.0
//
// Memory on the same NUMA node as the GPU: copies between the two do not pass the link between the
// machine's processors.
#ifndef STOWAGE_RUNTIME_CUDA_NUMA_NODE_H_
#define STOWAGE_RUNTIME_CUDA_NUMA_NODE_H_

#include <optional>
#include <string>

#include "ir/base/units.h"

namespace stowage::runtime {

/// The node of a PCI device, "0000:3B:00.0" as CUDA writes it. Nothing where the machine has memory
/// on one node alone, or does not say which is the device's. `root`, here and below: the folder
/// that has sys/.
std::optional<int> findNumaNode(const std::string& busId, const std::string& root = "");

/// Pages of the range, which begins with a page, that are made from now on come from `node` as long
/// as it has free ones; whichever thread makes them. False: the kernel refuses, as it does in many
/// containers.
bool preferNumaNode(void* base, Bytes bytes, int node);

/// The calling thread runs on the node's processors alone, so that pages that it makes come from
/// there as long as it has free ones. False: this process may use none of them.
bool runOnNumaNode(int node, const std::string& root = "");

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CUDA_NUMA_NODE_H_
