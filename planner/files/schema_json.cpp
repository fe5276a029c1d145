// SPDX-License-Identifier: Apache-2.0
#include "planner/files/schema_json.h"

#include <cassert>
#include <utility>

#include "planner/files/schema_words_json.h"

namespace stowage::planner {

namespace {

/// Lets every object have further members.
void openObjects(Json& schema) {
  if (schema.is_object()) schema.erase("additionalProperties");
  if (!schema.is_structured()) return;
  for (Json& part : schema) openObjects(part);
}

Json selectDefinition(Json schema, llvm::StringRef definition) {
  if (definition.empty()) return schema;
  assert(schema["definitions"].contains(definition.str()) && "no such definition");
  return Json{{"$ref", "#/definitions/" + definition.str()},
              {"definitions", std::move(schema["definitions"])}};
}

}  // namespace

SchemaChecker::SchemaChecker(llvm::StringRef schema, llvm::StringRef definition,
                             UnknownMembers unknown) {
  Json document = Json::parse(schema.begin(), schema.end(), nullptr, /*allow_exceptions=*/false);
  assert(!document.is_discarded() && "a published schema must be JSON");
  if (unknown == UnknownMembers::kIgnored) openObjects(document);
  schema_ = selectDefinition(std::move(document), definition);
}

std::optional<JsonFault> SchemaChecker::check(const Json& value, const std::string& pointer) const {
  return findSchemaFault(schema_, value, pointer);
}

}  // namespace stowage::planner
