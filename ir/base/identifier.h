// SPDX-License-Identifier: Apache-2.0
//
// Which characters a name in the text form may have.
#ifndef STOWAGE_IR_BASE_IDENTIFIER_H_
#define STOWAGE_IR_BASE_IDENTIFIER_H_

#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringRef.h>

namespace stowage::ir {

/// [A-Za-z0-9_.]
inline bool isNameCharacter(char character) {
  return llvm::isAlnum(character) || character == '_' || character == '.';
}

/// [A-Za-z0-9_.]+: what may stand after '%', '@' and '#'.
inline bool isIdentifier(llvm::StringRef text) {
  return !text.empty() && text.take_while(isNameCharacter).size() == text.size();
}

}  // namespace stowage::ir

#endif  // STOWAGE_IR_BASE_IDENTIFIER_H_
