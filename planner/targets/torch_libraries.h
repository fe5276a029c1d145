// SPDX-License-Identifier: Apache-2.0
//
// What each supported torch brings: libraries that choose kernels, and so bits. A step is planned
// for the torch that captured it.
#ifndef STOWAGE_PLANNER_TARGETS_TORCH_LIBRARIES_H_
#define STOWAGE_PLANNER_TARGETS_TORCH_LIBRARIES_H_

#include <llvm/ADT/StringRef.h>

#include <string>

#include "ir/base/error.h"
#include "ir/graph/graph.h"
#include "ir/schedule/target.h"

namespace stowage::planner {

/// Of a profile where nobody says another one.
inline constexpr const char* kDefaultTorch = "2.15.0";

/// "2.11.0 or 2.15.0".
std::string supportedTorches();

/// Whether steps of this torch were run on a GPU, with equal bits; false for an unknown one.
bool wasRunOnGpu(llvm::StringRef version);

/// Gives a target the libraries of torch `version`: its own, and on a GPU CUDA and cuDNN as its
/// wheel pins them. Errors: kUnsupported saying which there are.
ir::Error setTorch(ir::Target& target, llvm::StringRef version);

/// The version of the torch that captured the graph; "" for a graph written by hand.
std::string torchOf(const ir::Graph& graph);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_TARGETS_TORCH_LIBRARIES_H_
