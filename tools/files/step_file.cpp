// SPDX-License-Identifier: Apache-2.0
#include "tools/files/step_file.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/xxhash.h>

#include "ir/text/printer.h"

namespace stowage::tools {

namespace {

constexpr llvm::StringLiteral kChecksumLine = "// checksum xxh64:";

std::string checksumOf(llvm::StringRef text) {
  return llvm::utohexstr(llvm::xxHash64(text), /*LowerCase=*/true);
}

}  // namespace

void writeStepFile(const ir::Graph& graph, llvm::raw_ostream& os) {
  std::string text;
  llvm::raw_string_ostream printed(text);
  ir::printGraph(graph, printed);
  printed.flush();
  os << text << kChecksumLine << checksumOf(text) << '\n';
}

ir::Error checkStepText(llvm::StringRef text, const std::string& path) {
  const size_t at = text.rfind(kChecksumLine);
  if (at == llvm::StringRef::npos) return ir::success();
  const std::string found = checksumOf(text.take_front(at));
  const llvm::StringRef expected =
      text.drop_front(at + kChecksumLine.size()).take_while(llvm::isAlnum);
  if (expected == found) return ir::success();
  const auto line = static_cast<int>(text.take_front(at).count('\n')) + 1;
  ir::PlanError error(ir::ErrorCode::kParse,
                      "the file was changed after it was written: its text "
                      "has checksum xxh64:" +
                          found + ", expected xxh64:" + expected.str());
  error.note("a change that is meant is accepted without this line");
  return ir::makeError(error.at({.file = path, .line = line, .column = 1}));
}

}  // namespace stowage::tools
