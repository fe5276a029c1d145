// SPDX-License-Identifier: Apache-2.0
//
// One token of look-ahead over a text, and the only place where parse errors are made. Failure is
// sticky: the reader keeps the first error with its place, and from then on returns only kEnd. So
// grammar functions need no check after each call: after a failure they return unused defaults, and
// every loop over tokens ends.
#ifndef STOWAGE_IR_TEXT_TOKEN_READER_H_
#define STOWAGE_IR_TEXT_TOKEN_READER_H_

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <optional>
#include <string>

#include "ir/base/error.h"
#include "ir/base/units.h"
#include "ir/text/lexer.h"

namespace stowage::ir {

class TokenReader {
 public:
  TokenReader(llvm::StringRef text, std::string fileName);

  const Token& peek() const { return current_; }
  Token next();
  bool atEnd() const { return current_.kind == TokenKind::kEnd; }

  /// Consumes the token if it is that one.
  bool accept(char sign);
  bool acceptWord(llvm::StringRef word);
  void expect(char sign);
  void expectWord(llvm::StringRef word);
  /// Text of the next token, which must be of that kind; `what` says what was expected.
  llvm::StringRef expectKind(TokenKind kind, llvm::StringRef what);
  std::string expectString();
  int64_t expectInteger();
  int64_t expectNonNegative(llvm::StringRef what);
  Bytes expectBytes() { return Bytes(expectNonNegative("a number of bytes")); }
  double expectNumber();
  /// "[3, 4]"
  llvm::SmallVector<int64_t, 4> expectIntegers();
  /// A word made of `prefix` and a number, like r12; -1 after a failure.
  int32_t expectNumbered(char prefix, llvm::StringRef what);
  /// A statement begins here, so a line must.
  void expectLineStart();

  bool failed() const { return failure_.has_value(); }
  void fail(const Token& where, std::string message);
  /// "found X, expected `what`" at the next token.
  void failExpected(llvm::StringRef what);
  /// The kParse error. Only after a failure.
  Error takeError();
  SourceLocation locationOf(const Token& token) const;

 private:
  Lexer lexer_;
  std::string fileName_;
  Token current_;
  std::optional<PlanError> failure_;
};

}  // namespace stowage::ir

#endif  // STOWAGE_IR_TEXT_TOKEN_READER_H_
