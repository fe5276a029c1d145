// SPDX-License-Identifier: Apache-2.0
//
// Cost tables as JSON, schema planner/files/schemas/costs-1.0.schema.json: one op signature per
// line, in order of the signatures, the same bytes for the same table.
#ifndef STOWAGE_PLANNER_FILES_COST_JSON_H_
#define STOWAGE_PLANNER_FILES_COST_JSON_H_

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>

#include <string>

#include "ir/base/error.h"
#include "ir/costs/cost_table.h"

namespace stowage::planner {

struct CostFile {
  std::string stowageVersion;
  std::string torchVersion;  // "" when none took part
  ir::CostTable table;
};

/// Errors: kInvalidArgument for names that are not UTF-8.
ir::Error writeCosts(const CostFile& costs, llvm::raw_ostream& os);
/// Errors: kParse with file, line or JSON pointer, what was found and what was expected.
ir::Expected<CostFile> readCosts(llvm::StringRef text, std::string fileName = "<text>");

/// "xxh3:...": what a plan says of the costs it was made with. Covers everything but who wrote the
/// file.
std::string costsFingerprint(const ir::CostTable& table);

/// The published schema.
llvm::StringRef costsSchemaText();

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FILES_COST_JSON_H_
