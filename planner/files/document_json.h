// SPDX-License-Identifier: Apache-2.0
//
// Reads a versioned JSON document without holding all of it: members that the caller names as long
// arrays come element by element, the rest at the end as one small tree. Checks, in this order:
// kind and schema version, syntax, what the caller's visitors expect, the schema. Repeated keys,
// deep nesting and truncation are errors. Private to planner/*_json*.
#ifndef STOWAGE_PLANNER_FILES_DOCUMENT_JSON_H_
#define STOWAGE_PLANNER_FILES_DOCUMENT_JSON_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/StringRef.h>

#include <string>
#include <vector>

#include "ir/base/error.h"
#include "planner/files/field_json.h"
#include "planner/files/schema_json.h"

namespace stowage::planner {

/// A top-level array that is read element by element, and the schema's definition of an element.
struct LongArray {
  std::string key;
  std::string definition;
};

/// A published schema, ready for use: the document but its long arrays, and their elements.
struct DocumentSchema {
  DocumentSchema(llvm::StringRef text, llvm::ArrayRef<LongArray> longArrays,
                 UnknownMembers unknown);
  SchemaChecker header;
  std::vector<SchemaChecker> elements;  // by long array
};

/// Made once per format, since the schema is compiled.
struct DocumentFormat {
  DocumentFormat(std::string kind, llvm::StringRef schemaText, std::vector<LongArray> longArrays);
  std::string kind;  // "plan"
  int major = 1;     // another one is refused
  int minor = 0;     // above ours: members that we do not know are ignored
  llvm::StringRef schemaText;
  std::vector<LongArray> longArrays;
  DocumentSchema schema;  // of exactly this version
};

struct DocumentVisitor {
  /// An element of long array number `array` of the format.
  llvm::function_ref<void(size_t array, size_t index, const FieldReader& element)> onElement;
  /// Everything else; called last.
  llvm::function_ref<void(const FieldReader& header)> onHeader;
};

/// Errors: kParse with file, line or JSON pointer, what was found and what was expected.
ir::Error readDocument(const DocumentFormat& format, llvm::StringRef text,
                       const std::string& fileName, const DocumentVisitor& visitor);

/// The error for a fault; `line` 0 when it is not known.
ir::Error makeDocumentError(const JsonFault& fault, const std::string& fileName, int line);

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FILES_DOCUMENT_JSON_H_
