// SPDX-License-Identifier: Apache-2.0
#include "planner/files/document_json.h"

#include <algorithm>
#include <utility>

#include "planner/files/event_json.h"

namespace stowage::planner {

namespace {

/// What a document says of itself.
struct Heading {
  std::string kind;
  std::string version;
};

int lineAt(llvm::StringRef text, size_t position) {
  return static_cast<int>(text.take_front(position).count('\n')) + 1;
}

ir::Expected<Heading> findHeading(llvm::StringRef text, const std::string& fileName) {
  Heading heading;
  const auto onText = [&](const std::string& key, const std::string& value) {
    if (key == "kind") heading.kind = value;
    if (key == "schema_version") heading.version = value;
    return heading.kind.empty() || heading.version.empty();
  };
  const ParsedJson parsed =
      parseJson(text, {.isLong = [](const std::string&) { return true; },
                       .onElement = [](const std::string&, size_t, const Json&) { return true; },
                       .onText = onText});
  if (parsed.fault)
    return makeDocumentError(*parsed.fault, fileName, lineAt(text, parsed.position));
  return heading;
}

std::string versionText(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

/// The minor version, once kind and major version are found to be ours.
ir::Expected<int> checkHeading(const DocumentFormat& format, const Heading& heading,
                               const std::string& fileName) {
  if (heading.kind != format.kind) {
    const std::string found = heading.kind.empty() ? "nothing" : "'" + heading.kind + "'";
    return makeDocumentError({"/kind", "found " + found + ", expected '" + format.kind + "'"},
                             fileName, 0);
  }
  const auto [majorText, minorText] = llvm::StringRef(heading.version).split('.');
  int major = 0;
  int minor = 0;
  const bool isVersion =
      !majorText.getAsInteger(10, major) && !minorText.getAsInteger(10, minor) && minor >= 0;
  if (!isVersion || major != format.major) {
    const std::string found = heading.version.empty() ? "nothing" : "'" + heading.version + "'";
    return makeDocumentError({"/schema_version", "found " + found + ", expected '" +
                                                     versionText(format.major, format.minor) +
                                                     "' or another minor version of it"},
                             fileName, 0);
  }
  return minor;
}

class DocumentReader {
 public:
  DocumentReader(const DocumentFormat& format, const DocumentSchema& schema,
                 const DocumentVisitor& visitor)
      : format_(format), schema_(schema), visitor_(visitor) {}

  ir::Error read(llvm::StringRef text, const std::string& fileName) {
    const auto isLong = [&](const std::string& key) {
      return findArray(key) < format_.longArrays.size();
    };
    const auto onElement = [&](const std::string& key, size_t index, const Json& element) {
      return readElement(findArray(key), index, element);
    };
    const ParsedJson parsed =
        parseJson(text, {.isLong = isLong,
                         .onElement = onElement,
                         .onText = [](const std::string&, const std::string&) { return true; }});
    const int line = lineAt(text, parsed.position);
    if (fault_) return makeDocumentError(*fault_, fileName, line);
    if (parsed.fault) return makeDocumentError(*parsed.fault, fileName, line);
    visitor_.onHeader(FieldReader(parsed.header, "", fault_));
    if (!fault_) fault_ = schema_.header.check(parsed.header, "");
    return fault_ ? makeDocumentError(*fault_, fileName, 0) : ir::success();
  }

 private:
  size_t findArray(const std::string& key) const {
    const auto found = std::find_if(format_.longArrays.begin(), format_.longArrays.end(),
                                    [&](const LongArray& array) { return array.key == key; });
    return static_cast<size_t>(found - format_.longArrays.begin());
  }

  bool readElement(size_t array, size_t index, const Json& element) {
    const std::string pointer = "/" + format_.longArrays[array].key + "/" + std::to_string(index);
    visitor_.onElement(array, index, FieldReader(element, pointer, fault_));
    if (!fault_) fault_ = schema_.elements[array].check(element, pointer);
    return !fault_;
  }

  const DocumentFormat& format_;
  const DocumentSchema& schema_;
  const DocumentVisitor& visitor_;
  std::optional<JsonFault> fault_;
};

}  // namespace

DocumentSchema::DocumentSchema(llvm::StringRef text, llvm::ArrayRef<LongArray> longArrays,
                               UnknownMembers unknown)
    : header(text, "", unknown) {
  for (const LongArray& array : longArrays) elements.emplace_back(text, array.definition, unknown);
}

DocumentFormat::DocumentFormat(std::string kind, llvm::StringRef schemaText,
                               std::vector<LongArray> longArrays)
    : kind(std::move(kind)),
      schemaText(schemaText),
      longArrays(std::move(longArrays)),
      schema(schemaText, this->longArrays, UnknownMembers::kRefused) {}

ir::Error makeDocumentError(const JsonFault& fault, const std::string& fileName, int line) {
  const std::string place = fault.pointer.empty() ? "" : "at " + fault.pointer + ": ";
  ir::PlanError error(ir::ErrorCode::kParse, place + fault.message);
  return ir::makeError(std::move(error.at({.file = fileName, .line = line})));
}

ir::Error readDocument(const DocumentFormat& format, llvm::StringRef text,
                       const std::string& fileName, const DocumentVisitor& visitor) {
  ir::Expected<Heading> heading = findHeading(text, fileName);
  if (!heading) return heading.takeError();
  ir::Expected<int> minor = checkHeading(format, *heading, fileName);
  if (!minor) return minor.takeError();
  if (*minor <= format.minor) {
    return DocumentReader(format, format.schema, visitor).read(text, fileName);
  }
  const DocumentSchema lenient(format.schemaText, format.longArrays, UnknownMembers::kIgnored);
  return DocumentReader(format, lenient, visitor).read(text, fileName);
}

}  // namespace stowage::planner
