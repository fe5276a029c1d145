// SPDX-License-Identifier: Apache-2.0
//
// Makes text from files safe to print on a terminal. Control characters (ASCII and Unicode), marks
// that change the writing direction, and bytes that are not UTF-8 become \xHH. Very long names and
// messages lose their middle and keep both ends. Code that prints a line passes every text that
// came from a file through here.
#ifndef STOWAGE_IR_BASE_PRINTABLE_H_
#define STOWAGE_IR_BASE_PRINTABLE_H_

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>

#include <cstddef>
#include <string>

namespace stowage::ir {

/// Most bytes of a message or line that are shown; a longer one keeps its begin and its end.
inline constexpr size_t kLongestShown = 4000;
/// Most notes of a message that are shown. The first ones show what is wrong.
inline constexpr size_t kMostShown = 50;

/// Bytes of the character that `text` begins with, if it may be printed: 1 to 4. Else 0: the first
/// byte is to be escaped. `text` is not empty.
size_t printableLength(llvm::StringRef text);
/// The text as one line: everything that may not be printed is escaped, newlines too.
std::string printable(llvm::StringRef text);
/// At most about `most` bytes of `text`: "begin [N bytes left out] end".
std::string shortened(llvm::StringRef text, size_t most = kLongestShown);
/// A line that quotes files: short enough and printable.
void writeLine(llvm::raw_ostream& os, llvm::StringRef text);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_BASE_PRINTABLE_H_
