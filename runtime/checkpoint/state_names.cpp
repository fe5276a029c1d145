// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/state_names.h"

#include <llvm/ADT/StringRef.h>

#include <optional>
#include <set>
#include <utility>

#include "ir/base/affix.h"

namespace stowage::runtime {

namespace {

struct StateOf {
  std::string function;  // "m"
  std::string parameter;
};

std::optional<StateOf> splitName(llvm::StringRef name) {
  const auto [function, rest] = name.split('(');
  if (function.empty() || !ir::endsWith(rest, ")")) return std::nullopt;
  return StateOf{function.str(), rest.drop_back().str()};
}

/// torch's word for a kind of state. The second moment is called differently by the optimizers
/// that have no first one.
std::string torchWord(const StateOf& state, const std::set<std::string>& names) {
  static const std::map<std::string, std::string> kWords = {{"m", "exp_avg"},
                                                            {"v", "exp_avg_sq"},
                                                            {"vmax", "max_exp_avg_sq"},
                                                            {"momentum", "momentum_buffer"},
                                                            {"mean", "grad_avg"}};
  if (state.function == "v" && names.count("m(" + state.parameter + ")") == 0) return "square_avg";
  const auto found = kWords.find(state.function);
  return found == kWords.end() ? state.function : found->second;
}

bool isOptimizerState(const ir::Storage& storage) {
  return storage.persistent &&
         (storage.role == ir::Role::kState || storage.role == ir::Role::kMaster ||
          storage.role == ir::Role::kStepCounter);
}

}  // namespace

bool isModelState(const ir::Storage& storage) {
  return storage.role == ir::Role::kParameter || storage.role == ir::Role::kFrozen ||
         storage.role == ir::Role::kBuffer;
}

std::map<std::string, std::string> checkpointNames(const ir::Graph& graph) {
  std::set<std::string> own;
  for (const ir::Storage& storage : graph.storages()) own.insert(storage.name);
  std::map<std::string, std::string> names;
  std::set<std::string> taken = own;
  for (const ir::Storage& storage : graph.storages()) {
    if (!isOptimizerState(storage)) continue;
    const std::optional<StateOf> state = splitName(storage.name);
    if (!state) continue;
    std::string name = "state." + state->parameter + "." + torchWord(*state, own);
    if (taken.insert(name).second) names.emplace(storage.name, std::move(name));
  }
  return names;
}

std::string stepCountName(const std::string& parameter) { return "state." + parameter + ".step"; }

}  // namespace stowage::runtime
