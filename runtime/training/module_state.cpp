// SPDX-License-Identifier: Apache-2.0
#include "runtime/training/module_state.h"

#include <torch/nn/module.h>

#include "runtime/capture/host_state/optimizer_state.h"

namespace stowage::runtime {

namespace {

void forEachState(const TrainedModule& trained,
                  llvm::function_ref<void(const std::string&, const at::Tensor&)> visit) {
  for (const auto& item : trained.module->named_parameters()) {
    visit(item.key(), item.value());
    forEachStateTensor(trained.optimizer, item.value(),
                       [&](llvm::StringRef function, ir::Role, const at::Tensor& tensor) {
                         visit(std::string(function) + "(" + item.key() + ")", tensor);
                       });
  }
  for (const auto& item : trained.module->named_buffers()) visit(item.key(), item.value());
}

}  // namespace

std::set<std::string> stateNames(const TrainedModule& trained) {
  std::set<std::string> names;
  forEachState(trained, [&](const std::string& name, const at::Tensor&) { names.insert(name); });
  return names;
}

void keepState(const TrainedModule& trained, TrainingRecord& record) {
  forEachState(trained, [&](const std::string& name, const at::Tensor& tensor) {
    record.state.emplace_back(name, digestOf(tensor));
  });
  record.sortState();
}

}  // namespace stowage::runtime
