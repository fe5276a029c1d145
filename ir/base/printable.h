// SPDX-License-Identifier: Apache-2.0
//
// Text of files, made harmless for a terminal: control characters (of ASCII and of Unicode), marks
// that turn the direction of writing, and bytes that are no UTF-8 become \xHH. Names and messages
// that are longer than anybody reads are cut in their middle, so that their begin and their end
// stay. Whoever prints a line sends every foreign text of it through here.
#ifndef STOWAGE_IR_BASE_PRINTABLE_H_
#define STOWAGE_IR_BASE_PRINTABLE_H_

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>

#include <cstddef>
#include <string>

namespace stowage::ir {

/// Bytes of a message or of a line that are shown; of longer ones begin and end.
inline constexpr size_t kLongestShown = 4000;
/// Notes of a message that are shown: what is wrong with 200,000 tensors shows in the first ones.
inline constexpr size_t kMostShown = 50;

/// Bytes of the character that `text` begins with, if it may be printed: 1 to 4. Else 0: the first
/// byte is to be escaped. `text` is not empty.
size_t printableLength(llvm::StringRef text);
/// The text with everything else escaped, newlines too: one line.
std::string printable(llvm::StringRef text);
/// At most about `most` bytes of `text`: "begin [N bytes left out] end".
std::string shortened(llvm::StringRef text, size_t most = kLongestShown);
/// A line that quotes files: short enough and printable.
void writeLine(llvm::raw_ostream& os, llvm::StringRef text);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_BASE_PRINTABLE_H_
