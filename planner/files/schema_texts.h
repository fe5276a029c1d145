// SPDX-License-Identifier: Apache-2.0
//
// The texts of planner/files/schemas/*.json, compiled in from the files that are also installed.
#ifndef STOWAGE_PLANNER_FILES_SCHEMA_TEXTS_H_
#define STOWAGE_PLANNER_FILES_SCHEMA_TEXTS_H_

namespace stowage::planner {

extern const char* const kPlanSchema;
extern const char* const kCostsSchema;

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FILES_SCHEMA_TEXTS_H_
