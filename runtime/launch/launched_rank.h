// SPDX-License-Identifier: Apache-2.0
//
// What a launcher says to each process that it starts. torchrun's variables; mpirun, SLURM and
// others are told to set the same ones.
#ifndef STOWAGE_RUNTIME_LAUNCH_LAUNCHED_RANK_H_
#define STOWAGE_RUNTIME_LAUNCH_LAUNCHED_RANK_H_

#include <llvm/ADT/STLFunctionalExtras.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "runtime/ranks/socket.h"

namespace stowage::runtime {

struct LaunchedRank {
  int32_t rank = 0;
  int32_t count = 1;
  int32_t localRank = 0;  // among those of its host: which GPU is its own
  int32_t localCount = 1;
  HostPort store;
  bool isStoreServed = false;  // by the launcher; else rank 0 serves it
  std::string keys;            // what keys of this start of the training begin with
};

/// Of ranks that are all started on one host, beside a store served on its loopback: the variables
/// of one of them, "NAME=value", and the names of all that a launcher may have set.
std::vector<std::string> variablesOf(int32_t rank, int32_t count, uint16_t storePort);
bool isLaunchVariable(const std::string& name);

/// The value of a variable, if it is set.
using ReadVariable = llvm::function_ref<std::optional<std::string>(const std::string& name)>;

/// Nothing if neither RANK nor WORLD_SIZE is set, or WORLD_SIZE is 1: the process is alone.
/// Errors: kEnvironment for a variable that is missing or wrong, with its name.
ir::Expected<std::optional<LaunchedRank>> readLaunchedRank(ReadVariable readVariable);
/// By the variables of this process.
ir::Expected<std::optional<LaunchedRank>> launchedRank();

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_LAUNCH_LAUNCHED_RANK_H_
