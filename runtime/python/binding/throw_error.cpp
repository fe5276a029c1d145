// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/binding/throw_error.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace stowage::python {
namespace {

using Json = nlohmann::ordered_json;

Json infeasibleJson(const ir::Infeasible& infeasible) {
  Json holders = Json::array();
  for (const ir::Infeasible::Holder& holder : infeasible.holders) {
    holders.push_back({{"storage", holder.storage}, {"bytes", holder.bytes.value()}});
  }
  return {{"budget_bytes", infeasible.budget.value()},
          {"smallest_budget_bytes", infeasible.smallestBudget.value()},
          {"space", infeasible.space},
          {"peak_node", infeasible.peakNode},
          {"holders", std::move(holders)}};
}

}  // namespace

void throwError(ir::Error error) {
  if (!error) return;
  const ir::PlanError payload = ir::takePayload(std::move(error));
  Json json = {{"code", ir::errorCodeName(payload.code())},
               {"message", payload.text()},
               {"notes", payload.notes()}};
  if (!payload.location().file.empty()) json["file"] = payload.location().file;
  if (payload.infeasible()) json["infeasible"] = infeasibleJson(*payload.infeasible());
  throw std::runtime_error("stowage:" +
                           json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace stowage::python
