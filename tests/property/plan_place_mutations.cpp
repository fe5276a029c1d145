// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>

#include "tests/property/plan_file_mutations.h"

namespace stowage::tests {

namespace {

using Change = std::function<bool(PlanJson&, Random&)>;

constexpr size_t kStorage = 1;
constexpr size_t kSpace = 2;
constexpr size_t kOffset = 3;

int64_t alignment(const PlanJson& plan) { return plan["target"]["align_bytes"].get<int64_t>(); }
bool isOnDevice(const PlanJson& residency) { return residency[kSpace] == "device"; }
bool isOnHost(const PlanJson& residency) { return residency[kSpace] == "host"; }
bool always(const PlanJson&) { return true; }

PlanJson& arenaOf(PlanJson& plan, const std::string& space) {
  return plan["spaces"][space]["arena_bytes"];
}

/// A device arena is the budget.
void growDevice(PlanJson& plan, int64_t by) {
  PlanJson& arena = arenaOf(plan, "device");
  arena = std::max<int64_t>(0, arena.get<int64_t>() + by);
  plan["budget_bytes"] = std::max<int64_t>(1, plan["budget_bytes"].get<int64_t>() + by);
}

Change atResidency(const std::function<bool(const PlanJson&)>& holds,
                   const std::function<void(PlanJson&, Random&, PlanJson&)>& change) {
  return [=](PlanJson& plan, Random& random) {
    PlanJson* residency = pickItem(plan["residencies"], random, holds);
    if (residency == nullptr) return false;
    change(*residency, random, plan);
    return true;
  };
}

/// By so many alignment units, or bytes.
Change shift(int64_t units, int64_t bytes = 0) {
  return atResidency(always, [=](PlanJson& residency, Random&, PlanJson& plan) {
    const int64_t offset = residency[kOffset].get<int64_t>() + units * alignment(plan) + bytes;
    residency[kOffset] = std::max<int64_t>(0, offset);
  });
}

std::vector<PlanFileMutation> residencyMutations() {
  return {
      {"place a unit higher", shift(1)},
      {"place a unit lower", shift(-1)},
      {"place some units higher", shift(3)},
      {"place off its alignment", shift(0, 64)},
      {"place of another residency",
       atResidency(always,
                   [](PlanJson& residency, Random& random, PlanJson& plan) {
                     const PlanJson space = residency[kSpace];
                     const PlanJson* other = pickItem(
                         plan["residencies"], random,
                         [&](const PlanJson& candidate) { return candidate[kSpace] == space; });
                     residency[kOffset] = (*other)[kOffset];
                   })},
      {"places swapped",
       [](PlanJson& plan, Random& random) {
         const bool device = random.chance(70);
         PlanJson* a = pickItem(plan["residencies"], random, device ? isOnDevice : isOnHost);
         PlanJson* b = pickItem(plan["residencies"], random, device ? isOnDevice : isOnHost);
         if (a == nullptr || a == b) return false;
         std::swap((*a)[kOffset], (*b)[kOffset]);
         return true;
       }},
      {"place at the arena's begin",
       atResidency(always,
                   [](PlanJson& residency, Random&, PlanJson&) { residency[kOffset] = 0; })},
      {"place at the arena's end", atResidency(always,
                                               [](PlanJson& residency, Random&, PlanJson& plan) {
                                                 residency[kOffset] = arenaOf(
                                                     plan, residency[kSpace].get<std::string>());
                                               })},
      {"place in a larger arena", atResidency(isOnDevice,
                                              [](PlanJson& residency, Random&, PlanJson& plan) {
                                                residency[kOffset] = arenaOf(plan, "device");
                                                growDevice(plan, 64 * alignment(plan));
                                              })},
      {"place on the larger host", atResidency(isOnHost,
                                               [](PlanJson& residency, Random&, PlanJson& plan) {
                                                 PlanJson& arena = arenaOf(plan, "host");
                                                 residency[kOffset] = arena;
                                                 arena = arena.get<int64_t>() + 65536;
                                               })},
      {"all places higher",
       [](PlanJson& plan, Random&) {
         for (PlanJson& residency : plan["residencies"]) {
           if (!isOnDevice(residency)) continue;
           residency[kOffset] = residency[kOffset].get<int64_t>() + alignment(plan);
         }
         for (PlanJson& command : plan["commands"]) {
           if (!command.contains("temp")) continue;
           command["temp"][0] = command["temp"][0].get<int64_t>() + alignment(plan);
         }
         growDevice(plan, alignment(plan));
         return true;
       }},
      {"residency in another space",
       atResidency(always,
                   [](PlanJson& residency, Random& random, PlanJson&) {
                     residency[kSpace] = isOnDevice(residency) ? "host"
                                         : random.chance(50)   ? "disk"
                                                               : "device";
                   })},
      {"residency of another storage",
       atResidency(always,
                   [](PlanJson& residency, Random& random, PlanJson& plan) {
                     const int64_t count = plan["graph"]["storages"];
                     residency[kStorage] = random.between(0, count - 1);
                   })},
      {"residency that nobody uses",
       [](PlanJson& plan, Random& random) {
         PlanJson added = plan["residencies"][static_cast<size_t>(
             random.between(0, static_cast<int64_t>(plan["residencies"].size()) - 1))];
         added[0] = plan["residencies"].size();
         plan["residencies"].push_back(added);
         return true;
       }},
      {"last residency dropped", [](PlanJson& plan, Random&) {
         plan["residencies"].erase(plan["residencies"].size() - 1);
         return true;
       }}};
}

std::function<bool(const PlanJson&)> having(const char* key) {
  return [key](const PlanJson& command) { return command.contains(key); };
}

Change atCommandWith(const char* key,
                     const std::function<void(PlanJson&, Random&, PlanJson&)>& change) {
  return [=](PlanJson& plan, Random& random) {
    PlanJson* command = pickItem(plan["commands"], random, having(key));
    if (command == nullptr) return false;
    change(*command, random, plan);
    return true;
  };
}

std::vector<PlanFileMutation> temporaryMutations() {
  const auto addTo = [](size_t part, int64_t units) {
    return atCommandWith("temp", [=](PlanJson& command, Random&, PlanJson& plan) {
      PlanJson& number = command["temp"][part];
      number = std::max<int64_t>(0, number.get<int64_t>() + units * alignment(plan));
    });
  };
  return {{"temporaries higher", addTo(0, 1)},
          {"temporaries lower", addTo(0, -1)},
          {"temporaries smaller", addTo(1, -1)},
          {"temporaries larger", addTo(1, 1)},
          {"temporaries dropped", atCommandWith("temp", [](PlanJson& command, Random&,
                                                           PlanJson&) { command.erase("temp"); })},
          {"temporaries over a residency",
           atCommandWith("temp",
                         [](PlanJson& command, Random& random, PlanJson& plan) {
                           command["temp"][0] =
                               (*pickItem(plan["residencies"], random, isOnDevice))[kOffset];
                         })},
          {"temporaries swapped",
           [](PlanJson& plan, Random& random) {
             PlanJson* a = pickItem(plan["commands"], random, having("temp"));
             PlanJson* b = pickItem(plan["commands"], random, having("temp"));
             if (a == nullptr || a == b) return false;
             std::swap((*a)["temp"], (*b)["temp"]);
             return true;
           }},
          {"temporaries where none were", [](PlanJson& plan, Random& random) {
             PlanJson* run = pickItem(plan["commands"], random, having("node"));
             if (run == nullptr || run->contains("temp")) return false;
             const int64_t offset =
                 (*pickItem(plan["residencies"], random, isOnDevice))[kOffset].get<int64_t>();
             (*run)["temp"] = {offset, alignment(plan)};
             return true;
           }}};
}

std::vector<PlanFileMutation> inPlaceReuseMutations() {
  return {
      {"in-place reuse dropped", atCommandWith("takes", [](PlanJson& command, Random&,
                                                           PlanJson&) { command.erase("takes"); })},
      {"in-place reuse of another operand",
       atCommandWith("takes",
                     [](PlanJson& command, Random& random, PlanJson&) {
                       if (command["in"].empty()) return;
                       command["takes"] = random.pick(command["in"]);
                     })},
      {"in-place reuse claimed",
       [](PlanJson& plan, Random& random) {
         PlanJson* run = pickItem(plan["commands"], random, having("in"));
         if (run == nullptr || (*run)["in"].empty()) return false;
         (*run)["takes"] = random.pick((*run)["in"]);
         return true;
       }},
      {"result placed over an operand", [](PlanJson& plan, Random& random) {
         PlanJson* run = pickItem(plan["commands"], random, having("in"));
         if (run == nullptr || (*run)["in"].empty() || (*run)["out"].empty()) return false;
         const auto operand = random.pick((*run)["in"]).get<size_t>();
         const auto result = (*run)["out"][0].get<size_t>();
         plan["residencies"][result][kOffset] = plan["residencies"][operand][kOffset];
         if (random.chance(70)) (*run)["takes"] = operand;
         return operand != result;
       }}};
}

std::vector<PlanFileMutation> arenaMutations() {
  return {
      {"device arena larger",
       [](PlanJson& plan, Random& random) {
         growDevice(plan, random.between(1, 4) * alignment(plan));
         return true;
       }},
      {"device arena smaller",
       [](PlanJson& plan, Random&) {
         growDevice(plan, -alignment(plan));
         return true;
       }},
      {"device arena other than the budget",
       [](PlanJson& plan, Random&) {
         PlanJson& arena = arenaOf(plan, "device");
         arena = arena.get<int64_t>() + alignment(plan);
         return true;
       }},
      {"host arena larger",
       [](PlanJson& plan, Random& random) {
         if (!plan["spaces"].contains("host")) return false;
         PlanJson& arena = arenaOf(plan, "host");
         arena = arena.get<int64_t>() + random.between(1, 8) * 512;
         return true;
       }},
      {"host arena smaller",
       [](PlanJson& plan, Random&) {
         if (!plan["spaces"].contains("host")) return false;
         PlanJson& arena = arenaOf(plan, "host");
         arena = std::max<int64_t>(0, arena.get<int64_t>() - 512);
         return true;
       }},
      {"no host arena", [](PlanJson& plan, Random&) { return plan["spaces"].erase("host") == 1; }},
      {"host limit below the arena",
       [](PlanJson& plan, Random&) {
         if (!plan["spaces"].contains("host")) return false;
         plan["spaces"]["host"]["limit_bytes"] = 1;
         return true;
       }},
      {"host limit at the arena",
       [](PlanJson& plan, Random&) {
         if (!plan["spaces"].contains("host")) return false;
         plan["spaces"]["host"]["limit_bytes"] = arenaOf(plan, "host");
         return true;
       }},
      {"reserved bytes added",
       [](PlanJson& plan, Random&) {
         plan["spaces"]["device"]["reserved"].push_back(
             {{"what", "workspace"}, {"stream", 0}, {"offset", 0}, {"bytes", alignment(plan)}});
         return true;
       }},
      {"disk arena added", [](PlanJson& plan, Random&) {
         plan["spaces"]["disk"] = {{"arena_bytes", 8192}};
         return true;
       }}};
}

}  // namespace

std::vector<PlanFileMutation> placeMutations() {
  std::vector<PlanFileMutation> all = residencyMutations();
  for (const auto& more : {temporaryMutations(), inPlaceReuseMutations(), arenaMutations()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace stowage::tests
