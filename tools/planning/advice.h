// SPDX-License-Identifier: Apache-2.0
//
// What there is to choose from for one step on one machine: the policies, everything that keeps the
// step's bits, and that with updates on the host. Each choice at each budget is a search of its
// own, so its numbers are those of `plan` with the choice's flags.
#ifndef STOWAGE_TOOLS_PLANNING_ADVICE_H_
#define STOWAGE_TOOLS_PLANNING_ADVICE_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "ir/schedule/schedule.h"
#include "tools/planning/planning_flags.h"
#include "tools/planning/policies.h"

namespace stowage::tools {

struct Choice {
  const char* name = "";
  const char* summary = "";
  const char* flags = "";  // of `plan`, beside its budget
  /// Nothing: all, and updates on the host.
  std::optional<Policy> policy;
  /// Updates may be on the host, with the bits of its kernels.
  bool mayUseHostKernels = false;
};
llvm::ArrayRef<Choice> allChoices();

/// A choice at one budget.
struct ChoicePlan {
  std::optional<ir::Prediction> predicted;  // none: it does not fit
  Bytes hostUpdated;                        // of parameters
  bool wasEnded = false;                    // by the time limit
  std::string space;                        // which one is too small
  Bytes smallestBudget;                     // of that space, which works
};

struct ChoiceAnswer {
  Choice choice;
  std::vector<ChoicePlan> plans;        // one a budget; none where `reason` says why
  std::optional<Bytes> smallestBudget;  // of the device; none: a host limit stands before it
  std::string reason;                   // why no budget has a plan

  /// Of all plans; none where nothing fits.
  std::optional<Bytes> hostPeak() const;
};

/// For the arenas `budgets`. `timeLimit`: seconds for each plan; 0: none. Errors: all but those
/// that say that this choice has no plan.
ir::Expected<ChoiceAnswer> answerChoice(const Choice& choice, const PlanningInputs& inputs,
                                        llvm::ArrayRef<Bytes> budgets, double timeLimit);

/// Of the answers at the `budget`-th budget: null where nothing fits. Of equals: what needs no
/// transfers, then what needs no flag, then the first. `hostKernels`: also of those with updates on
/// the host, which then must be faster than all others.
const ChoiceAnswer* findFastest(llvm::ArrayRef<ChoiceAnswer> answers, size_t budget,
                                bool hostKernels);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_PLANNING_ADVICE_H_
