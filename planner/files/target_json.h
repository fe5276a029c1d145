// SPDX-License-Identifier: Apache-2.0
//
// The parts that plan files and cost tables share: links, and the block that describes a machine.
// Private to planner/*_json*.
#ifndef STOWAGE_PLANNER_FILES_TARGET_JSON_H_
#define STOWAGE_PLANNER_FILES_TARGET_JSON_H_

#include "ir/schedule/target.h"
#include "planner/files/field_json.h"
#include "planner/files/write_json.h"

namespace stowage::planner {

void writeLinks(const ir::LinkModel& links, JsonWriter& writer);
ir::LinkModel readLinks(FieldReader reader);

/// All of a target but its reserved regions, which are part of the file's spaces.
void writeTarget(const ir::Target& target, JsonWriter& writer);
ir::Target readTarget(FieldReader reader);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FILES_TARGET_JSON_H_
