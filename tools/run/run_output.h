// SPDX-License-Identifier: Apache-2.0
//
// What `stowage run` says: what is predicted; at its end how far it came, memory, times, the
// comparison with the unplanned run; as lines or as JSON.
#ifndef STOWAGE_TOOLS_RUN_RUN_OUTPUT_H_
#define STOWAGE_TOOLS_RUN_RUN_OUTPUT_H_

#include <optional>
#include <string>

#include "planner/files/plan_file.h"
#include "runtime/training/comparison.h"
#include "runtime/training/planned_training.h"
#include "tools/run/timeline_file.h"
#include "tools/run/times_files.h"

namespace llvm {
class raw_ostream;
}

namespace stowage::tools {

struct RunAnswer {
  const planner::PlanFile& plan;
  const runtime::RunRecord& run;
  std::string data;
  std::string weights;  // where first values came from; "": of the example model
  std::string resume;   // folders; "": none
  std::string save;
  TimesFiles times = {};  // that were written
  std::optional<TimelineSummary> timeline = std::nullopt;
  const runtime::Comparison* comparison = nullptr;
};
/// Before the first step.
void printExpected(const planner::PlanFile& plan, llvm::raw_ostream& os);

void printRunAnswer(const RunAnswer& answer, llvm::raw_ostream& os);
void printRunJson(const RunAnswer& answer);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_RUN_RUN_OUTPUT_H_
