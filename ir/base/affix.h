// SPDX-License-Identifier: Apache-2.0
//
// Prefix and suffix of a text. llvm::StringRef's own members have other names from LLVM 16 on, and
// lose the old ones with LLVM 19; any LLVM from 14 on shall do.
#ifndef STOWAGE_IR_BASE_AFFIX_H_
#define STOWAGE_IR_BASE_AFFIX_H_

#include <llvm/ADT/StringRef.h>

namespace stowage::ir {

inline bool startsWith(llvm::StringRef text, llvm::StringRef prefix) {
  return text.take_front(prefix.size()) == prefix;
}
inline bool endsWith(llvm::StringRef text, llvm::StringRef suffix) {
  return text.take_back(suffix.size()) == suffix;
}

}  // namespace stowage::ir

#endif  // STOWAGE_IR_BASE_AFFIX_H_
