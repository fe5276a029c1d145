// SPDX-License-Identifier: Apache-2.0
//
// The plan file as JSON, schema planner/files/schemas/plan-1.0.schema.json. Written as it goes, one
// decision, residency, boundary entry and command per line, integers only, the same bytes for the
// same plan. Read one element at a time, each checked against the schema: a file from elsewhere is
// either a plan whose every number is in range, or an error with file, line, JSON pointer, what was
// found and what was expected. Whether the schedule is right is the verifier's to say.
#ifndef STOWAGE_PLANNER_FILES_PLAN_JSON_H_
#define STOWAGE_PLANNER_FILES_PLAN_JSON_H_

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>

#include <string>

#include "ir/base/error.h"
#include "planner/files/plan_file.h"

namespace stowage::planner {

/// Errors: kInvalidArgument for a schedule below level kSynced, and for names that are not UTF-8.
ir::Error writePlan(const PlanFile& plan, llvm::raw_ostream& os);

/// Decisions may come in any order and are sorted. A schema version 1.x with x above ours is read
/// as far as we know it; another major version is refused. Errors: kParse; kPlanMismatch when
/// the target block does not have the fingerprint that it states.
ir::Expected<PlanFile> readPlan(llvm::StringRef text, std::string fileName = "<text>");

/// The published schema.
llvm::StringRef planSchemaText();

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FILES_PLAN_JSON_H_
