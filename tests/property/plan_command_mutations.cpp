// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "tests/property/plan_file_mutations.h"

namespace stowage::tests {

namespace {

using Change = std::function<bool(PlanJson&, Random&)>;

bool isRun(const PlanJson& command) { return command["op"] == "run"; }
bool isCopy(const PlanJson& command) { return command["op"] == "copy"; }
bool has(const PlanJson& command, const char* key) {
  return command.contains(key) && !(command[key].is_array() && command[key].empty());
}

int64_t pickPosition(const PlanJson& commands, Random& random) {
  return random.between(0, static_cast<int64_t>(commands.size()) - 1);
}

/// `order`: old positions, in their new order; those left out go, those named twice are copies. A
/// wait for a command goes where its first copy is.
void arrange(PlanJson& plan, const std::vector<int64_t>& order) {
  const PlanJson old = plan["commands"];
  std::map<int64_t, int64_t> places;
  for (size_t i = 0; i < order.size(); ++i) places.emplace(order[i], static_cast<int64_t>(i));
  PlanJson changed = PlanJson::array();
  for (const int64_t position : order) {
    PlanJson command = old[static_cast<size_t>(position)];
    for (const char* key : {"wait", "prev"}) {
      if (!command.contains(key)) continue;
      std::vector<int64_t> ids;
      for (const PlanJson& id : command[key]) {
        const auto place = places.find(id.get<int64_t>());
        if (place != places.end()) ids.push_back(place->second);
      }
      std::sort(ids.begin(), ids.end());
      command[key] = ids;
    }
    changed.push_back(command);
  }
  plan["commands"] = changed;
}

std::vector<int64_t> identity(const PlanJson& plan) {
  std::vector<int64_t> order(plan["commands"].size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// Picks a command that `holds` and changes the order by its position.
Change reorder(bool (*holds)(const PlanJson&),
               const std::function<void(std::vector<int64_t>&, int64_t, Random&)>& change) {
  return [=](PlanJson& plan, Random& random) {
    PlanJson* command = pickItem(plan["commands"], random, holds);
    if (command == nullptr) return false;
    std::vector<int64_t> order = identity(plan);
    change(order, command - &plan["commands"][0], random);
    arrange(plan, order);
    return true;
  };
}

void moveTo(std::vector<int64_t>& order, int64_t from, int64_t to) {
  const int64_t value = order[static_cast<size_t>(from)];
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, value);
}

Change atCommand(const std::function<bool(const PlanJson&)>& holds,
                 const std::function<void(PlanJson&, Random&, PlanJson&)>& change) {
  return [=](PlanJson& plan, Random& random) {
    PlanJson* command = pickItem(plan["commands"], random, holds);
    if (command == nullptr) return false;
    change(*command, random, plan);
    return true;
  };
}

std::function<bool(const PlanJson&)> having(const char* key) {
  return [key](const PlanJson& command) { return has(command, key); };
}

PlanJson& pickIn(PlanJson& array, Random& random) {
  return array[static_cast<size_t>(pickPosition(array, random))];
}

/// A residency other than `id`, of the same storage if asked.
int64_t otherResidency(const PlanJson& plan, int64_t id, bool sameStorage, Random& random) {
  const PlanJson& all = plan["residencies"];
  std::vector<int64_t> candidates;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool fits = !sameStorage || all[i][1] == all[static_cast<size_t>(id)][1];
    if (fits && static_cast<int64_t>(i) != id) candidates.push_back(static_cast<int64_t>(i));
  }
  return candidates.empty() ? id : random.pick(candidates);
}

/// A field of residencies, one of them changed.
Change rewire(const char* key, bool sameStorage) {
  return atCommand(having(key), [=](PlanJson& command, Random& random, PlanJson& plan) {
    PlanJson& id = command[key].is_array() ? pickIn(command[key], random) : command[key];
    id = otherResidency(plan, id.get<int64_t>(), sameStorage, random);
  });
}

std::vector<PlanFileMutation> orderMutations() {
  const auto any = [](const PlanJson&) { return true; };
  return {
      {"copy dropped",
       reorder(isCopy, [](auto& order, int64_t at, Random&) { order.erase(order.begin() + at); })},
      {"launch dropped",
       reorder(isRun, [](auto& order, int64_t at, Random&) { order.erase(order.begin() + at); })},
      {"copy doubled",
       reorder(isCopy, [](auto& order, int64_t at,
                          Random&) { order.insert(order.begin() + at, int64_t{at}); })},
      {"launch doubled",
       reorder(isRun, [](auto& order, int64_t at,
                         Random&) { order.insert(order.begin() + at, int64_t{at}); })},
      {"neighbours swapped", reorder(any,
                                     [](auto& order, int64_t at, Random&) {
                                       if (at > 0) moveTo(order, at, at - 1);
                                     })},
      {"command moved up",
       reorder(any, [](auto& order, int64_t at,
                       Random& random) { moveTo(order, at, random.between(0, at)); })},
      {"command moved down",
       reorder(any,
               [](auto& order, int64_t at, Random& random) {
                 moveTo(order, at, random.between(at, static_cast<int64_t>(order.size()) - 1));
               })},
      {"commands swapped", reorder(any,
                                   [](auto& order, int64_t at, Random& random) {
                                     const auto last = static_cast<int64_t>(order.size()) - 1;
                                     std::swap(order[static_cast<size_t>(at)],
                                               order[static_cast<size_t>(random.between(0, last))]);
                                   })},
      {"copy first",
       reorder(isCopy, [](auto& order, int64_t at, Random&) { moveTo(order, at, 0); })},
      {"copy last",
       reorder(isCopy, [](auto& order, int64_t at,
                          Random&) { moveTo(order, at, static_cast<int64_t>(order.size()) - 1); })},
      {"copy a little earlier", reorder(isCopy,
                                        [](auto& order, int64_t at, Random& random) {
                                          moveTo(order, at,
                                                 std::max<int64_t>(0, at - random.between(1, 3)));
                                        })},
      {"copy a little later", reorder(isCopy, [](auto& order, int64_t at, Random& random) {
         const auto last = static_cast<int64_t>(order.size()) - 1;
         moveTo(order, at, std::min(last, at + random.between(1, 3)));
       })}};
}

void dropOne(PlanJson& list, Random& random) {
  list.erase(static_cast<size_t>(pickPosition(list, random)));
}

void insertSorted(PlanJson& command, const char* key, int64_t id) {
  std::vector<int64_t> ids;
  if (command.contains(key)) ids = command[key].get<std::vector<int64_t>>();
  ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  command[key] = ids;
}

int64_t positionOf(const PlanJson& command, const PlanJson& plan) {
  return &command - &plan["commands"][0];
}

/// A list of ids moved from one command to a neighbour.
Change handOn(const char* key, int64_t by) {
  return [=](PlanJson& plan, Random& random) {
    PlanJson& commands = plan["commands"];
    PlanJson* command = pickItem(commands, random, having(key));
    if (command == nullptr) return false;
    const int64_t to = positionOf(*command, plan) + by;
    if (to < 0 || to >= static_cast<int64_t>(commands.size())) return false;
    for (const PlanJson& id : PlanJson((*command)[key])) {
      insertSorted(commands[static_cast<size_t>(to)], key, id.get<int64_t>());
    }
    command->erase(key);
    return true;
  };
}

std::vector<PlanFileMutation> waitMutations() {
  const auto any = [](const PlanJson&) { return true; };
  const auto dropAll = [](const char* key) {
    return [key](PlanJson& plan, Random&) {
      for (PlanJson& command : plan["commands"]) command.erase(key);
      return true;
    };
  };
  const auto dropAt = [](const char* key) {
    return atCommand(having(key), [key](PlanJson& command, Random& random, PlanJson&) {
      dropOne(command[key], random);
    });
  };
  const auto rename = [](const char* from, const char* to) {
    return atCommand(having(from), [=](PlanJson& command, Random&, PlanJson&) {
      for (const PlanJson& id : PlanJson(command[from])) {
        insertSorted(command, to, id.get<int64_t>());
      }
      command.erase(from);
    });
  };
  return {
      {"wait dropped", dropAt("wait")},
      {"waits of a command dropped",
       atCommand(having("wait"),
                 [](PlanJson& command, Random&, PlanJson&) { command.erase("wait"); })},
      {"all waits dropped", dropAll("wait")},
      {"wait across steps dropped", dropAt("prev")},
      {"all waits across steps dropped", dropAll("prev")},
      {"wait added", atCommand(any,
                               [](PlanJson& command, Random& random, PlanJson& plan) {
                                 const int64_t at = positionOf(command, plan);
                                 if (at == 0) return;
                                 insertSorted(command, "wait", random.between(0, at - 1));
                               })},
      {"wait for a later command",
       atCommand(any,
                 [](PlanJson& command, Random& random, PlanJson& plan) {
                   const auto last = static_cast<int64_t>(plan["commands"].size());
                   insertSorted(command, "wait", random.between(positionOf(command, plan), last));
                 })},
      {"wait across steps added", atCommand(any,
                                            [](PlanJson& command, Random& random, PlanJson& plan) {
                                              insertSorted(command, "prev",
                                                           pickPosition(plan["commands"], random));
                                            })},
      {"wait made one across steps", rename("wait", "prev")},
      {"wait across steps made one", rename("prev", "wait")},
      {"waits handed to the next command", handOn("wait", 1)},
      {"waits handed to the command before", handOn("wait", -1)},
      {"waits across steps handed on", handOn("prev", 1)},
      {"wait for the command before it",
       atCommand(having("wait"),
                 [](PlanJson& command, Random& random, PlanJson&) {
                   PlanJson& id = pickIn(command["wait"], random);
                   id = std::max<int64_t>(0, id.get<int64_t>() - 1);
                 })},
      {"wait for the command after it",
       atCommand(having("wait"), [](PlanJson& command, Random& random, PlanJson&) {
         PlanJson& id = pickIn(command["wait"], random);
         id = id.get<int64_t>() + 1;
       })}};
}

std::vector<PlanFileMutation> operandMutations() {
  const auto reverse = [](const char* key) {
    return atCommand(having(key), [key](PlanJson& command, Random&, PlanJson&) {
      std::reverse(command[key].begin(), command[key].end());
    });
  };
  const auto drop = [](const char* key) {
    return atCommand(having(key), [key](PlanJson& command, Random& random, PlanJson&) {
      dropOne(command[key], random);
    });
  };
  return {
      {"launch reads another residency of its operand", rewire("in", true)},
      {"launch reads another storage", rewire("in", false)},
      {"launch writes another residency of its result", rewire("out", true)},
      {"launch writes another storage", rewire("out", false)},
      {"operands reversed", reverse("in")},
      {"results reversed", reverse("out")},
      {"operand dropped", drop("in")},
      {"result dropped", drop("out")},
      {"copy from another residency", rewire("from", true)},
      {"copy into another residency", rewire("to", true)},
      {"copy of another storage", rewire("from", false)},
      {"copy into another storage", rewire("to", false)},
      {"copy turned round", atCommand(isCopy,
                                      [](PlanJson& command, Random&, PlanJson&) {
                                        std::swap(command["from"], command["to"]);
                                        command["stream"] = command["stream"] == 1 ? 2 : 1;
                                      })},
      {"copy on another stream",
       atCommand(isCopy, [](PlanJson& command, Random& random,
                            PlanJson&) { command["stream"] = random.between(0, 6); })},
      {"launch on another stream",
       atCommand(isRun, [](PlanJson& command, Random& random,
                           PlanJson&) { command["stream"] = random.between(1, 6); })},
      {"launch of another node", atCommand(isRun,
                                           [](PlanJson& command, Random& random, PlanJson& plan) {
                                             const int64_t nodes = plan["graph"]["nodes"];
                                             command["node"] = random.between(0, nodes - 1);
                                           })},
      {"nodes of two launches swapped",
       [](PlanJson& plan, Random& random) {
         PlanJson* a = pickItem(plan["commands"], random, isRun);
         PlanJson* b = pickItem(plan["commands"], random, isRun);
         if (a == nullptr || a == b) return false;
         std::swap((*a)["node"], (*b)["node"]);
         return true;
       }},
      {"original made a recompute",
       atCommand(isRun, [](PlanJson& command, Random&, PlanJson&) { command["recompute"] = 1; })},
      {"recompute made the original",
       atCommand(having("recompute"),
                 [](PlanJson& command, Random&, PlanJson&) { command.erase("recompute"); })},
      {"recompute with another number", atCommand(having("recompute"),
                                                  [](PlanJson& command, Random& random, PlanJson&) {
                                                    command["recompute"] = random.between(1, 4);
                                                  })},
      {"original recomputed at once",
       [](PlanJson& plan, Random& random) {
         PlanJson* run = pickItem(plan["commands"], random, isRun);
         if (run == nullptr) return false;
         const int64_t at = positionOf(*run, plan);
         std::vector<int64_t> order = identity(plan);
         order.insert(order.begin() + at + 1, at);
         arrange(plan, order);
         plan["commands"][static_cast<size_t>(at) + 1]["recompute"] = 1;
         return true;
       }},
      {"random state slot dropped",
       atCommand(having("rng"),
                 [](PlanJson& command, Random&, PlanJson&) { command.erase("rng"); })},
      {"random state slot changed",
       atCommand(having("rng"), [](PlanJson& command, Random& random,
                                   PlanJson&) { command["rng"] = random.between(0, 3); })},
      {"random state slot added",
       atCommand(isRun, [](PlanJson& command, Random& random, PlanJson&) {
         command["rng"] = random.between(0, 3);
       })}};
}

}  // namespace

PlanJson* pickItem(PlanJson& array, Random& random,
                   const std::function<bool(const PlanJson&)>& holds) {
  std::vector<PlanJson*> found;
  for (PlanJson& item : array) {
    if (holds(item)) found.push_back(&item);
  }
  return found.empty() ? nullptr : random.pick(found);
}

std::vector<PlanFileMutation> commandMutations() {
  std::vector<PlanFileMutation> all = orderMutations();
  for (const auto& more : {waitMutations(), operandMutations()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::vector<PlanFileMutation> planFileMutations() {
  std::vector<PlanFileMutation> all = commandMutations();
  for (const auto& more : {placeMutations(), claimMutations()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace stowage::tests
