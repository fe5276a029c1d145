// SPDX-License-Identifier: Apache-2.0
//
// What a schema has against a value, in words: the first place, what was found there, what the
// schema says. Knows the part of draft 7 that the published schemas use. Private to
// planner/*_json*.
#ifndef STOWAGE_PLANNER_FILES_SCHEMA_WORDS_JSON_H_
#define STOWAGE_PLANNER_FILES_SCHEMA_WORDS_JSON_H_

#include <optional>
#include <string>

#include "planner/files/field_json.h"

namespace stowage::planner {

/// The first fault of `value`, which stands at `pointer`, in the order of the schema; nothing when
/// there is none. References are to the definitions of `schema` itself.
std::optional<JsonFault> findSchemaFault(const Json& schema, const Json& value,
                                         const std::string& pointer);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FILES_SCHEMA_WORDS_JSON_H_
