// SPDX-License-Identifier: Apache-2.0
//
// What must hold for any text given to the parser of the IR, however broken: it is refused with a
// reason and a place, or it is read, and then its canonical text reads back to itself.
#ifndef STOWAGE_TESTS_FUZZ_PARSER_FUZZ_H_
#define STOWAGE_TESTS_FUZZ_PARSER_FUZZ_H_

#include <llvm/ADT/StringRef.h>

#include <string>

namespace stowage::tests {

struct ParseOutcome {
  bool accepted = false;
  std::string complaint;  // "" if all that must hold does
};
ParseOutcome checkParserOn(llvm::StringRef text);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_FUZZ_PARSER_FUZZ_H_
