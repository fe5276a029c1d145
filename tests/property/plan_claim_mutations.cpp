// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "tests/property/plan_file_mutations.h"

namespace stowage::tests {

namespace {

using Change = std::function<bool(PlanJson&, Random&)>;

bool always(const PlanJson&) { return true; }

Change atItem(const char* list, const std::function<void(PlanJson&, Random&, PlanJson&)>& change) {
  return [=](PlanJson& plan, Random& random) {
    PlanJson* item = pickItem(plan[list], random, always);
    if (item == nullptr) return false;
    change(*item, random, plan);
    return true;
  };
}

Change dropItem(const char* list) {
  return [=](PlanJson& plan, Random& random) {
    PlanJson* item = pickItem(plan[list], random, always);
    if (item == nullptr) return false;
    plan[list].erase(static_cast<size_t>(item - &plan[list][0]));
    return true;
  };
}

std::vector<PlanFileMutation> boundaryMutations() {
  return {
      {"boundary entry dropped", dropItem("boundary")},
      {"boundary entry doubled", atItem("boundary",
                                        [](PlanJson& entry, Random&, PlanJson& plan) {
                                          const PlanJson copy = entry;
                                          plan["boundary"].push_back(copy);
                                        })},
      {"dirty flipped",
       atItem("boundary", [](PlanJson& entry, Random&,
                             PlanJson&) { entry["dirty"] = !entry["dirty"].get<bool>(); })},
      {"boundary without places",
       atItem("boundary",
              [](PlanJson& entry, Random&, PlanJson&) { entry["at"] = PlanJson::array(); })},
      {"boundary at another residency", atItem("boundary",
                                               [](PlanJson& entry, Random& random, PlanJson& plan) {
                                                 const PlanJson* other =
                                                     pickItem(plan["residencies"], random, always);
                                                 entry["at"] = {(*other)[0]};
                                               })},
      {"boundary at another residency", atItem("boundary",
                                               [](PlanJson& entry, Random& random, PlanJson& plan) {
                                                 const PlanJson storage = entry["storage"];
                                                 const PlanJson* other =
                                                     pickItem(plan["residencies"], random,
                                                              [&](const PlanJson& candidate) {
                                                                return candidate[1] == storage;
                                                              });
                                                 if (other != nullptr) entry["at"] = {(*other)[0]};
                                               })},
      {"boundary at one place more", atItem("boundary",
                                            [](PlanJson& entry, Random& random, PlanJson& plan) {
                                              const PlanJson storage = entry["storage"];
                                              const PlanJson* other =
                                                  pickItem(plan["residencies"], random,
                                                           [&](const PlanJson& candidate) {
                                                             return candidate[1] == storage;
                                                           });
                                              if (other == nullptr) return;
                                              auto at = entry["at"].get<std::vector<int64_t>>();
                                              at.push_back((*other)[0].get<int64_t>());
                                              std::sort(at.begin(), at.end());
                                              entry["at"] = at;
                                            })},
      {"boundary entries swapped", [](PlanJson& plan, Random& random) {
         PlanJson* a = pickItem(plan["boundary"], random, always);
         PlanJson* b = pickItem(plan["boundary"], random, always);
         if (a == nullptr || a == b) return false;
         std::swap((*a)["at"], (*b)["at"]);
         return true;
       }}};
}

std::vector<PlanFileMutation> decisionMutations() {
  return {
      {"decision dropped", dropItem("decisions")},
      {"all decisions dropped",
       [](PlanJson& plan, Random&) {
         plan["decisions"] = PlanJson::array();
         return true;
       }},
      {"decision doubled", atItem("decisions",
                                  [](PlanJson& row, Random&, PlanJson& plan) {
                                    const PlanJson copy = row;
                                    plan["decisions"].push_back(copy);
                                  })},
      {"action changed",
       atItem(
           "decisions",
           [](PlanJson& row, Random& random, PlanJson&) {
             static const std::vector<std::string> kActions = {"keep", "host", "disk", "recompute"};
             row["action"] = random.pick(kActions);
           })},
      {"gap begins elsewhere", atItem("decisions",
                                      [](PlanJson& row, Random& random, PlanJson&) {
                                        PlanJson& at = row["gap"][0];
                                        at = std::max<int64_t>(
                                            0, at.get<int64_t>() + random.between(-2, 2));
                                      })},
      {"gap ends elsewhere", atItem("decisions",
                                    [](PlanJson& row, Random& random, PlanJson&) {
                                      PlanJson& at = row["gap"][1];
                                      at = std::max<int64_t>(
                                          0, at.get<int64_t>() + random.between(-2, 2));
                                    })},
      {"decision pinned",
       atItem("decisions", [](PlanJson& row, Random&, PlanJson&) { row["pinned"] = true; })},
      {"decision with another reason",
       atItem("decisions", [](PlanJson& row, Random&, PlanJson&) { row["why"] = "busy"; })},
      {"decisions in another order",
       [](PlanJson& plan, Random&) {
         std::reverse(plan["decisions"].begin(), plan["decisions"].end());
         return !plan["decisions"].empty();
       }},
      {"decision about another storage",
       atItem("decisions", [](PlanJson& row, Random& random, PlanJson& plan) {
         const int64_t count = plan["graph"]["storages"];
         row["storage"] = random.between(0, count - 1);
       })}};
}

/// A number that the plan claims, a little or much larger or smaller.
Change claim(const char* key) {
  return [key](PlanJson& plan, Random& random) {
    PlanJson& number = plan["predicted"][key];
    const int64_t by = random.chance(50) ? random.between(1, 512) : 1'000'000'000;
    const int64_t sign = random.chance(50) ? 1 : -1;
    number = std::max<int64_t>(0, number.get<int64_t>() + sign * by);
    return true;
  };
}

std::vector<PlanFileMutation> predictionMutations() {
  return {{"other peak claimed", claim("peak_bytes")},
          {"other host peak claimed", claim("host_peak_bytes")},
          {"other step time claimed", claim("step_ns")},
          {"other bound claimed", claim("bound_ns")},
          {"other compute time claimed", claim("compute_ns")},
          {"other bytes out claimed", claim("out_bytes")},
          {"other bytes in claimed", claim("in_bytes")},
          {"nothing claimed", [](PlanJson& plan, Random&) {
             for (PlanJson& number : plan["predicted"]) {
               if (number.is_number()) number = 0;
             }
             return true;
           }}};
}

std::vector<PlanFileMutation> modeMutations() {
  return {{"joined steps",
           [](PlanJson& plan, Random& random) {
             plan["mode"]["boundary"] = "joined";
             if (random.chance(50)) return true;
             for (PlanJson& command : plan["commands"]) command.erase("prev");
             return true;
           }},
          {"one graph of the step",
           [](PlanJson& plan, Random& random) {
             plan["mode"]["graph"] = random.chance(50) ? "whole" : "no_update";
             return true;
           }},
          {"other op table",
           [](PlanJson& plan, Random&) {
             plan["op_table_version"] = plan["op_table_version"].get<int64_t>() + 1;
             return true;
           }},
          {"other prefetch limit",
           [](PlanJson& plan, Random& random) {
             plan["prefetch_limit_bytes"] = random.between(0, 1 << 20);
             return true;
           }},
          {"other step count of the capture",
           [](PlanJson& plan, Random&) {
             plan["graph"]["steps_captured"] = 9;
             return true;
           }},
          {"other estimates of the target", [](PlanJson& plan, Random& random) {
             plan["target"]["memory_bytes_per_s"] = random.between(1, 1'000'000);
             plan["target"]["kernel_overhead_ns"] = random.between(0, 1'000'000);
             return true;
           }}};
}

}  // namespace

std::vector<PlanFileMutation> claimMutations() {
  std::vector<PlanFileMutation> all = boundaryMutations();
  for (const auto& more : {decisionMutations(), predictionMutations(), modeMutations()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace stowage::tests
