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
  Json ways = Json::array();
  for (const ir::Infeasible::WayOut& way : infeasible.ways) {
    Json one = {{"change", way.change}, {"fits", way.fits}};
    if (!way.fits) one["smallest_budget_bytes"] = way.smallestBudget.value();
    if (!way.fits) one["at_least"] = way.isAtLeast;
    ways.push_back(std::move(one));
  }
  return {{"budget_bytes", infeasible.budget.value()},
          {"smallest_budget_bytes", infeasible.smallestBudget.value()},
          {"space", infeasible.space},
          {"peak_node", infeasible.peakNode},
          {"holders", std::move(holders)},
          {"ways", std::move(ways)}};
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
