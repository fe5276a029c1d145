// SPDX-License-Identifier: Apache-2.0
//
// Standard output and standard error as people see them: whatever a line quotes, a terminal gets
// only what may be printed (ir/base/printable.h) and newlines, and no line is longer than anybody
// reads. A foreign text must not make lines of its own: whoever puts one into a line calls
// ir::printable(). Not for files: what goes to '-' and JSON is written as it is.
#ifndef STOWAGE_TOOLS_CLI_PRINTABLE_STREAM_H_
#define STOWAGE_TOOLS_CLI_PRINTABLE_STREAM_H_

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>

#include <cstddef>
#include <cstdint>

namespace stowage::tools {

/// Not buffered: each line goes out when it ends. A character is written in one piece.
class PrintableStream : public llvm::raw_ostream {
 public:
  explicit PrintableStream(llvm::raw_ostream& to)
      : llvm::raw_ostream(/*unbuffered=*/true), to_(to) {}

 private:
  void write_impl(const char* data, size_t size) override;
  uint64_t current_pos() const override { return position_; }
  void put(llvm::StringRef text);
  void endLine();

  llvm::raw_ostream& to_;
  uint64_t position_ = 0;
  size_t inLine_ = 0;  // bytes of the line so far
};

/// The answer of a verb, for people. Before every other stream of standard output.
llvm::raw_ostream& answers();
/// Messages, and answers where standard output holds a file.
llvm::raw_ostream& messages();

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_CLI_PRINTABLE_STREAM_H_
