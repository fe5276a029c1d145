// SPDX-License-Identifier: Apache-2.0
#include "planner/schema_json.h"

#include <cassert>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

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

/// valijson names places as "<root>", "[commands]", "[17]".
std::string toPointer(const std::vector<std::string>& context) {
  std::string pointer;
  for (const std::string& step : context) {
    const llvm::StringRef name = step;
    if (name.startswith("[")) pointer += "/" + name.drop_front().drop_back().str();
  }
  return pointer;
}

/// The value at `pointer`, or null if the pointer is of something that is not there.
const Json* findAt(const Json& value, const std::string& pointer) {
  const Json* at = &value;
  llvm::StringRef rest = pointer;
  while (rest.consume_front("/")) {
    const llvm::StringRef token = rest.take_until([](char c) { return c == '/'; });
    rest = rest.drop_front(token.size());
    size_t index = 0;
    if (at->is_array() && !token.getAsInteger(10, index) && index < at->size()) {
      at = &(*at)[index];
    } else if (at->is_object() && at->contains(token.str())) {
      at = &(*at)[token.str()];
    } else {
      return nullptr;
    }
  }
  return at;
}

}  // namespace

struct SchemaChecker::Compiled {
  valijson::Schema schema;
};

SchemaChecker::SchemaChecker(llvm::StringRef schema, llvm::StringRef definition,
                             UnknownMembers unknown)
    : compiled_(std::make_unique<Compiled>()) {
  Json document = Json::parse(schema.begin(), schema.end(), nullptr, /*allow_exceptions=*/false);
  assert(!document.is_discarded() && "a published schema must be JSON");
  if (unknown == UnknownMembers::kIgnored) openObjects(document);
  const Json selected = selectDefinition(std::move(document), definition);
  valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(selected), compiled_->schema);
}

SchemaChecker::SchemaChecker(SchemaChecker&&) noexcept = default;
SchemaChecker::~SchemaChecker() = default;

std::optional<JsonFault> SchemaChecker::check(const Json& value, const std::string& pointer) const {
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  valijson::ValidationResults results;
  const valijson::adapters::NlohmannJsonAdapter adapter(value);
  if (validator.validate(compiled_->schema, adapter, &results)) return std::nullopt;
  // The deepest place says most; places above it only say that something below is wrong.
  valijson::ValidationResults::Error worst{{}, "the schema does not allow it"};
  for (const valijson::ValidationResults::Error& error : results) {
    if (error.context.size() > worst.context.size()) worst = error;
  }
  const std::string below = toPointer(worst.context);
  const Json* found = findAt(value, below);
  llvm::StringRef reason = worst.description;
  reason.consume_back(".");
  return JsonFault{pointer + below, "found " + (found != nullptr ? excerpt(*found) : "nothing") +
                                        ", expected what the schema allows: " + reason.str()};
}

}  // namespace stowage::planner
