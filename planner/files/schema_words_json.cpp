// SPDX-License-Identifier: Apache-2.0
#include "planner/files/schema_words_json.h"

#include <llvm/ADT/StringRef.h>

#include <cassert>

namespace stowage::planner {

namespace {

/// The word of a type, as people say it.
const char* wordFor(llvm::StringRef type) {
  if (type == "integer") return "a whole number";
  if (type == "boolean") return "true or false";
  if (type == "object") return "an object";
  if (type == "array") return "an array";
  return "a string";
}

bool isOfType(const Json& value, llvm::StringRef type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "boolean") return value.is_boolean();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  assert(type == "string" && "a type that the published schemas do not use");
  return value.is_string();
}

/// The pointer of a member of what stands at `at`.
std::string memberOf(const std::string& at, const std::string& name) {
  return at + "/" + escapeToken(name);
}

std::string listOf(const Json& names) {
  std::string text;
  for (const Json& name : names) text += (text.empty() ? "" : ", ") + name.get<std::string>();
  return text;
}

class FaultFinder {
 public:
  explicit FaultFinder(const Json& root) : root_(root) {}

  std::optional<JsonFault> find(const Json& schema, const Json& value, const std::string& at) {
    if (schema.is_boolean()) {
      if (schema.get<bool>()) return std::nullopt;
      return fault(at, value, "no such member");
    }
    if (schema.contains("$ref")) return find(resolve(schema), value, at);
    if (auto found = checkParts(schema, value, at)) return found;
    if (!isAllowed(schema, value)) return fault(at, value, describe(schema));
    if (value.is_object()) return checkMembers(schema, value, at);
    return value.is_array() ? checkElements(schema, value, at) : std::nullopt;
  }

 private:
  static JsonFault fault(const std::string& at, const Json& value, const std::string& expected) {
    return {at, "found " + excerpt(value) + ", expected " + expected};
  }

  const Json& resolve(const Json& schema) const {
    llvm::StringRef name(schema["$ref"].get_ref<const std::string&>());
    const bool isOurs = name.consume_front("#/definitions/");
    assert(isOurs && "a reference that the published schemas do not use");
    (void)isOurs;
    return root_["definitions"][name.str()];
  }

  std::optional<JsonFault> checkParts(const Json& schema, const Json& value,
                                      const std::string& at) {
    if (schema.contains("allOf")) {
      for (const Json& part : schema["allOf"]) {
        if (auto found = find(part, value, at)) return found;
      }
    }
    if (!schema.contains("if")) return std::nullopt;
    const char* branch = find(schema["if"], value, at) ? "else" : "then";
    return schema.contains(branch) ? find(schema[branch], value, at) : std::nullopt;
  }

  /// The value by itself, without what is in it.
  static bool isAllowed(const Json& schema, const Json& value) {
    if (schema.contains("type") && !isOfType(value, schema["type"].get_ref<const std::string&>()))
      return false;
    if (schema.contains("const") && schema["const"] != value) return false;
    if (schema.contains("enum")) {
      bool isOne = false;
      for (const Json& choice : schema["enum"]) isOne = isOne || choice == value;
      if (!isOne) return false;
    }
    if (value.is_number()) {
      if (schema.contains("minimum") && value < schema["minimum"]) return false;
      if (schema.contains("maximum") && value > schema["maximum"]) return false;
    }
    return !value.is_string() || !schema.contains("minLength") ||
           value.get_ref<const std::string&>().size() >= schema["minLength"].get<size_t>();
  }

  std::optional<JsonFault> checkMembers(const Json& schema, const Json& value,
                                        const std::string& at) {
    static const Json kNone = Json::object();
    const Json& known = schema.contains("properties") ? schema["properties"] : kNone;
    if (schema.contains("required")) {
      for (const Json& key : schema["required"]) {
        const auto& name = key.get_ref<const std::string&>();
        if (value.contains(name)) continue;
        const std::string wanted = known.contains(name) ? describe(known[name]) : "it to be there";
        return JsonFault{memberOf(at, name), "found nothing, expected " + wanted};
      }
    }
    for (const auto& [name, member] : value.items()) {
      const std::string place = memberOf(at, name);
      if (known.contains(name)) {
        if (auto found = find(known[name], member, place)) return found;
      } else if (schema.contains("additionalProperties")) {
        const Json& others = schema["additionalProperties"];
        if (others == false)
          return fault(place, member, "no such member: there are " + names(known));
        if (auto found = find(others, member, place)) return found;
      }
    }
    return std::nullopt;
  }

  static std::string names(const Json& properties) {
    Json keys = Json::array();
    for (const auto& [name, property] : properties.items()) keys.push_back(name);
    return listOf(keys);
  }

  std::optional<JsonFault> checkElements(const Json& schema, const Json& value,
                                         const std::string& at) {
    static const Json kAny = true;
    const Json& items = schema.contains("items") ? schema["items"] : kAny;
    const bool isTuple = items.is_array();
    const size_t least = schema.contains("minItems") ? schema["minItems"].get<size_t>() : 0;
    const bool isClosed = isTuple && schema.contains("additionalItems");
    const size_t most = schema.contains("maxItems") ? schema["maxItems"].get<size_t>()
                        : isClosed                  ? items.size()
                                                    : value.size();
    if (value.size() < least || value.size() > most) {
      return fault(at, value,
                   "one of " + std::to_string(value.size() < least ? least : most) + " elements");
    }
    for (size_t i = 0; i < value.size(); ++i) {
      const Json& item = !isTuple ? items : i < items.size() ? items[i] : kAny;
      if (auto found = find(item, value[i], at + "/" + std::to_string(i))) return found;
    }
    return std::nullopt;
  }

  /// "a whole number from 0 to 6", "one of keep, host".
  std::string describe(const Json& schema) const {
    if (schema.is_boolean()) return "no such member";
    if (schema.contains("$ref")) return describe(resolve(schema));
    if (schema.contains("allOf")) return describe(schema["allOf"][0]);
    if (schema.contains("const")) return schema["const"].dump();
    if (schema.contains("enum")) return "one of " + listOf(schema["enum"]);
    if (!schema.contains("type")) return "it to be there";
    std::string text = wordFor(schema["type"].get_ref<const std::string&>());
    if (schema.contains("minLength")) text += " that is not empty";
    if (schema.contains("minimum")) text += " from " + schema["minimum"].dump();
    if (schema.contains("maximum")) text += " to " + schema["maximum"].dump();
    return text;
  }

  const Json& root_;
};

}  // namespace

std::optional<JsonFault> findSchemaFault(const Json& schema, const Json& value,
                                         const std::string& pointer) {
  return FaultFinder(schema).find(schema, value, pointer);
}

}  // namespace stowage::planner
