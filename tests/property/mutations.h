// SPDX-License-Identifier: Apache-2.0
//
// Ways to spoil a valid schedule, one place at a time, each with the rule that must notice. What a
// mutation aims at is its `rule`; where the place decides which rule is broken first, `expected`
// lists those that may answer (at least one must). Mutations of waits and offsets can be harmless:
// they leave the verdict to tests/support/byte_oracle.h.
#ifndef STOWAGE_TESTS_PROPERTY_MUTATIONS_H_
#define STOWAGE_TESTS_PROPERTY_MUTATIONS_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/verify/verify.h"

namespace stowage::tests {

/// Everything that verify sees.
struct Case {
  std::shared_ptr<const ir::Graph> graph;
  ir::Target target;
  ir::Schedule schedule;
  std::shared_ptr<const ir::NodeCosts> costs;
  Bytes budget;

  ir::VerifyInput input() const {
    return {.graph = *graph,
            .schedule = schedule,
            .target = target,
            .costs = costs.get(),
            .budget = budget};
  }
};

struct Mutant {
  std::string site;
  std::set<int> expected;  // one of these must be reported; empty: ask the oracle
  Case changed;
};

using Visit = std::function<void(const Mutant&)>;

struct MutationKind {
  const char* name;
  int rule;
  std::function<void(const Case&, const Visit&)> forEachSite;
};

std::vector<MutationKind> shapeMutations();  // V1 to V6, V14, V15, V25 to V28
std::vector<MutationKind> dataMutations();   // V7 to V9, V21 to V23, V31
std::vector<MutationKind> bytesMutations();  // V10 to V13, V16 to V20, V24, V30

// --- shared by the three ---

/// Calls `change(mutant, position)` on a fresh copy for each position below `count`; it says what
/// is expected, or nothing when the position is no site.
struct Change {
  bool applies = false;
  std::string site;
  std::set<int> expected;
};
void forEachPosition(const Case& original, size_t count, const Visit& visit,
                     const std::function<Change(Case&, size_t)>& change);

/// Takes a command out; what waited for it waits for what it waited for.
void eraseCommand(ir::Schedule& schedule, size_t index);
/// Puts a command before position `index`. Its waits are positions in the result.
void insertCommand(ir::Schedule& schedule, size_t index, ir::Command command);
/// Moves a command to an earlier position; waits that would point forwards are dropped.
void moveCommandUp(ir::Schedule& schedule, size_t from, size_t to);

ir::ResidencyId addResidency(ir::Schedule& schedule, ir::StorageId storage, ir::Space space,
                             int64_t offset);
bool isHeld(const ir::Schedule& schedule, ir::ResidencyId id);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_PROPERTY_MUTATIONS_H_
