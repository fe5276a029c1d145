// SPDX-License-Identifier: Apache-2.0
//
// What a person would decide for all tensors at once, to plan by or to compare a plan with. A
// policy only narrows what the planner may do, so the same search and the same evaluation serve
// both, and a policy's step is the fastest one that is known under it.
#ifndef STOWAGE_TOOLS_PLANNING_POLICIES_H_
#define STOWAGE_TOOLS_PLANNING_POLICIES_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/Support/raw_ostream.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "tools/planning/planning_flags.h"

namespace stowage::tools {

enum class Policy : uint8_t {
  kKeepAll,        // nothing is moved or recomputed
  kOffloadOnly,    // nothing is recomputed
  kRecomputeOnly,  // nothing is moved
  kFullRecompute,  // whole segments of forward run again in backward; nothing is moved
  kStreamStates,   // parameters and optimizer states are on the host between their uses
  kHostStepOnly,   // all updates are on the host where that helps; nothing else leaves the device
  kAll             // each tensor by itself: a plan without a policy
};
const char* policyName(Policy policy);
/// Errors: kInvalidArgument with the nearest name.
ir::Expected<Policy> parsePolicy(const std::string& name);
/// "keep-all, offload-only, ..."
std::string listPolicies();

/// The options of `inputs` narrowed to `policy`, one for each way to follow it; what they pin stays
/// pinned. Full recompute has several ways: numbers of segments.
std::vector<passes::PlanStepOptions> narrowTo(Policy policy, const PlanningInputs& inputs);

/// Errors: kInvalidArgument saying why no update of the step may run on the host.
ir::Error checkHostUpdates(const PlanningInputs& inputs);

/// Plans one step in several ways, the fastest of which counts, for any number of budgets.
class PolicyPlanner {
 public:
  /// `inputs` must outlive it. Errors: as passes::StepPlanner::make, and as checkHostUpdates for
  /// kHostStepOnly.
  static ir::Expected<PolicyPlanner> make(Policy policy, const PlanningInputs& inputs);
  /// By the options of the inputs, with these alone.
  static ir::Expected<PolicyPlanner> make(const std::vector<passes::PlanStepOptions>& ways,
                                          const PlanningInputs& inputs);
  /// Errors: as passes::planStep; the infeasible error with the smallest budget.
  ir::Expected<passes::PlannedStep> plan(Bytes budget);

 private:
  std::vector<passes::StepPlanner> ways_;
};

/// The fastest plan under `policy` for the budget of the inputs. Errors: as PolicyPlanner.
ir::Expected<passes::PlannedStep> planBy(Policy policy, const PlanningInputs& inputs);

/// One policy's answer for the budget of the inputs.
struct PolicyAnswer {
  Policy policy = Policy::kKeepAll;
  std::optional<Nanoseconds> stepTime;  // none: nothing fits
  std::optional<Bytes> smallestBudget;  // of the device that works, where nothing fits
  std::string reason;                   // why there is no plan, if not for the device's bytes
  Bytes hostUpdated;  // of parameters whose updates are on the host, with other bits than a GPU's
};
/// All policies but kAll. Errors: all but kInfeasible and kInvalidArgument, which are answers.
ir::Expected<std::vector<PolicyAnswer>> comparePolicies(const PlanningInputs& inputs, bool quiet);

/// A line for each; `stepTime`: of the plan beside them.
void printPolicies(llvm::ArrayRef<PolicyAnswer> answers, Nanoseconds stepTime,
                   llvm::raw_ostream& os);
nlohmann::ordered_json policiesJson(llvm::ArrayRef<PolicyAnswer> answers);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_PLANNING_POLICIES_H_
