// SPDX-License-Identifier: Apache-2.0
#include "planner/files/schema_json.h"

#include <cassert>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

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

struct SchemaChecker::Compiled {
  Json document;
  valijson::Schema schema;
};

SchemaChecker::SchemaChecker(llvm::StringRef schema, llvm::StringRef definition,
                             UnknownMembers unknown)
    : compiled_(std::make_unique<Compiled>()) {
  Json document = Json::parse(schema.begin(), schema.end(), nullptr, /*allow_exceptions=*/false);
  assert(!document.is_discarded() && "a published schema must be JSON");
  if (unknown == UnknownMembers::kIgnored) openObjects(document);
  compiled_->document = selectDefinition(std::move(document), definition);
  valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(compiled_->document),
                        compiled_->schema);
}

SchemaChecker::SchemaChecker(SchemaChecker&&) noexcept = default;
SchemaChecker::~SchemaChecker() = default;

std::optional<JsonFault> SchemaChecker::check(const Json& value, const std::string& pointer) const {
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  const valijson::adapters::NlohmannJsonAdapter adapter(value);
  if (validator.validate(compiled_->schema, adapter, nullptr)) return std::nullopt;
  if (std::optional<JsonFault> fault = findSchemaFault(compiled_->document, value, pointer)) {
    return fault;
  }
  return JsonFault{pointer, "found " + excerpt(value) + ", expected what the schema allows"};
}

}  // namespace stowage::planner
