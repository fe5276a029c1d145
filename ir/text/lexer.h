// SPDX-License-Identifier: Apache-2.0
//
// Cuts the text form into tokens, one at a time, each with its place. Knows characters and nothing
// of the grammar. Newlines are white space, except that a token remembers whether it is the first
// of its line: a statement must begin there. Tokens point into the text; strings are unescaped by
// `unquote` only when they are wanted. A character that begins no token, or a string without an
// end, becomes a kBad token whose text is the complaint.
#ifndef STOWAGE_IR_TEXT_LEXER_H_
#define STOWAGE_IR_TEXT_LEXER_H_

#include <llvm/ADT/StringRef.h>

#include <cstdint>
#include <optional>
#include <string>

namespace stowage::ir {

enum class TokenKind : uint8_t {
  kEnd,      // end of the text
  kWord,     // graph, f32, aten.mm.default, r12: letters, digits, '_' and '.'
  kValue,    // %name; the token's text is without the sign
  kGraph,    // @name; likewise
  kScalar,   // #name; likewise
  kUnset,    // @-
  kInteger,  // -12
  kFloat,    // 1.5 1e-3 -inf (inf and nan without a sign are words)
  kString,   // "..."; the token's text is what is between the quotes, still escaped
  kArrow,    // ->
  kSign,     // one of ( ) [ ] { } , : = +
  kBad
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  llvm::StringRef text;
  int line = 1;    // 1-based
  int column = 1;  // 1-based, in bytes
  bool startsLine = false;

  bool isWord(llvm::StringRef word) const { return kind == TokenKind::kWord && text == word; }
  bool isSign(char sign) const { return kind == TokenKind::kSign && text.front() == sign; }
};

class Lexer {
 public:
  explicit Lexer(llvm::StringRef text) : rest_(text) {}
  /// The next token; kEnd for ever once the text is over.
  Token next();

 private:
  void skipSpace();
  Token take(TokenKind kind, size_t length, size_t signLength = 0);
  Token takeSigned(TokenKind kind);
  Token takeNumber();
  Token takeString();
  Token bad(const char* complaint);

  llvm::StringRef rest_;
  int line_ = 1;
  int column_ = 1;
  bool startsLine_ = true;
};

/// What a string token stands for. None if an escape is not one of \" \\ \n \xHH.
std::optional<std::string> unquote(llvm::StringRef escaped);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_TEXT_LEXER_H_
