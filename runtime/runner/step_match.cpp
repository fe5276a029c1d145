// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner/step_match.h"

#include <map>
#include <string>
#include <utility>

namespace stowage::runtime {

namespace {

template <typename Id, typename Items>
std::map<std::string, Id> indexNames(const Items& items) {
  std::map<std::string, Id> ids;
  for (size_t i = 0; i < items.size(); ++i) ids.emplace(items[i].name, Id(i));
  return ids;
}

bool mustBeCaptured(const ir::Storage& storage) {
  return ir::isState(storage) || storage.role == ir::Role::kInput;
}

}  // namespace

ir::Expected<StepMatch> StepMatch::make(const ir::Graph& captured, const ir::Graph& planned) {
  ir::PlanError problems(ir::ErrorCode::kPlanMismatch, "the plan is for another step");
  StepMatch match;
  match.planned_.resize(captured.storages().size());
  const auto storages = indexNames<ir::StorageId>(captured.storages());
  for (size_t i = 0; i < planned.storages().size(); ++i) {
    const ir::Storage& storage = planned.storages()[i];
    const auto found = storages.find(storage.name);
    match.captured_.push_back(found == storages.end() ? ir::StorageId() : found->second);
    if (found != storages.end()) {
      match.planned_[found->second.index()] = ir::StorageId(i);
    } else if (mustBeCaptured(storage)) {
      problems.note("the captured step has no '" + storage.name + "'");
    }
  }
  const auto scalars = indexNames<ir::ScalarId>(captured.scalars());
  for (const ir::StepScalar& scalar : planned.scalars()) {
    const auto found = scalars.find(scalar.name);
    if (found == scalars.end()) {
      problems.note("the captured step has no step scalar '" + scalar.name + "'");
    } else {
      match.scalars_.push_back(found->second);
    }
  }
  if (!problems.notes().empty()) return ir::makeError(std::move(problems));
  return match;
}

}  // namespace stowage::runtime
