// SPDX-License-Identifier: Apache-2.0
//
// Checks JSON values against one of our published schemas (draft 7), whole or a definition of it.
// Private to planner/*_json*.
#ifndef STOWAGE_PLANNER_FILES_SCHEMA_JSON_H_
#define STOWAGE_PLANNER_FILES_SCHEMA_JSON_H_

#include <llvm/ADT/StringRef.h>

#include <optional>
#include <string>

#include "planner/files/field_json.h"

namespace stowage::planner {

/// May a document have members that the schema does not name? A file of a newer minor version may.
enum class UnknownMembers : bool { kRefused, kIgnored };

class SchemaChecker {
 public:
  /// `schema` is the text of a published schema; `definition` names one of its definitions, "" the
  /// whole.
  SchemaChecker(llvm::StringRef schema, llvm::StringRef definition, UnknownMembers unknown);

  /// What is wrong with `value`, which stands at `pointer` in its document.
  std::optional<JsonFault> check(const Json& value, const std::string& pointer) const;

 private:
  Json schema_;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FILES_SCHEMA_JSON_H_
