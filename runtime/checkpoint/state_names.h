// SPDX-License-Identifier: Apache-2.0
//
// What storages are called in checkpoints: parameters and buffers by their qualified names, as
// everybody's model files have them; optimizer state as torch lays it out, "m(fc.weight)" as
// "state.fc.weight.exp_avg". Names of no known form stay as they are.
#ifndef STOWAGE_RUNTIME_CHECKPOINT_STATE_NAMES_H_
#define STOWAGE_RUNTIME_CHECKPOINT_STATE_NAMES_H_

#include <map>
#include <string>

#include "ir/graph/graph.h"

namespace stowage::runtime {

/// Parameters and buffers: what a file of weights holds. The rest of the state is the optimizer's.
bool isModelState(const ir::Storage& storage);

/// Name in a checkpoint by name of storage, for all persistent storages whose names differ. No two
/// storages get one name.
std::map<std::string, std::string> checkpointNames(const ir::Graph& graph);

/// Where the step count of a parameter's optimizer state is, when it is a host number.
std::string stepCountName(const std::string& parameter);

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CHECKPOINT_STATE_NAMES_H_
