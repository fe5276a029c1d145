// SPDX-License-Identifier: Apache-2.0
#include "ir/text/lexer.h"

#include <llvm/ADT/StringExtras.h>

#include "ir/base/affix.h"
#include "ir/base/identifier.h"

namespace stowage::ir {

namespace {

size_t nameLength(llvm::StringRef text) { return text.take_while(isNameCharacter).size(); }

size_t digitsLength(llvm::StringRef text) { return text.take_while(llvm::isDigit).size(); }

// Length of ".5", "e-3" or ".5e+7" at the beginning of `text`; 0 if it is an integer's end.
size_t fractionLength(llvm::StringRef text) {
  size_t length = 0;
  if (startsWith(text, ".")) length = 1 + digitsLength(text.drop_front());
  llvm::StringRef exponent = text.drop_front(length);
  if (!startsWith(exponent, "e") && !startsWith(exponent, "E")) return length;
  exponent = exponent.drop_front();
  const size_t sign = startsWith(exponent, "-") || startsWith(exponent, "+") ? 1 : 0;
  const size_t digits = digitsLength(exponent.drop_front(sign));
  return digits == 0 ? length : length + 1 + sign + digits;
}

}  // namespace

Token Lexer::next() {
  skipSpace();
  if (rest_.empty()) return take(TokenKind::kEnd, 0);
  const char first = rest_.front();
  const char second = rest_.size() > 1 ? rest_[1] : '\0';
  if (first == '"') return takeString();
  if (first == '%') return takeSigned(TokenKind::kValue);
  if (first == '#') return takeSigned(TokenKind::kScalar);
  if (first == '@') {
    return second == '-' ? take(TokenKind::kUnset, 2) : takeSigned(TokenKind::kGraph);
  }
  if (first == '-' && second == '>') return take(TokenKind::kArrow, 2);
  if (first == '-' || llvm::isDigit(first)) return takeNumber();
  if (isNameCharacter(first)) return take(TokenKind::kWord, nameLength(rest_));
  if (llvm::StringRef("()[]{},:=+").contains(first)) return take(TokenKind::kSign, 1);
  return bad("a character that begins nothing");
}

void Lexer::skipSpace() {
  while (!rest_.empty()) {
    const char first = rest_.front();
    if (first == '\n') {
      rest_ = rest_.drop_front();
      ++line_;
      column_ = 1;
      startsLine_ = true;
    } else if (first == ' ' || first == '\t' || first == '\r') {
      rest_ = rest_.drop_front();
      ++column_;
    } else if (startsWith(rest_, "//")) {
      rest_ = rest_.drop_until([](char character) { return character == '\n'; });
    } else {
      return;
    }
  }
}

Token Lexer::take(TokenKind kind, size_t length, size_t signLength) {
  const Token token{.kind = kind,
                    .text = rest_.substr(signLength, length - signLength),
                    .line = line_,
                    .column = column_,
                    .startsLine = startsLine_};
  rest_ = rest_.drop_front(length);
  column_ += static_cast<int>(length);
  startsLine_ = false;
  return token;
}

Token Lexer::takeSigned(TokenKind kind) {
  const size_t length = nameLength(rest_.drop_front());
  return length == 0 ? bad("a sign without a name after it") : take(kind, 1 + length, 1);
}

Token Lexer::takeNumber() {
  const size_t minus = startsWith(rest_, "-") ? 1 : 0;
  const llvm::StringRef digits = rest_.drop_front(minus);
  if (startsWith(digits, "inf") && nameLength(digits) == 3) return take(TokenKind::kFloat, 4);
  const size_t whole = digitsLength(digits);
  if (whole == 0) return bad("a '-' without a number after it");
  const size_t fraction = fractionLength(digits.drop_front(whole));
  const size_t length = minus + whole + fraction;
  if (nameLength(rest_.drop_front(length)) > 0) return bad("a number that runs into a name");
  return take(fraction == 0 ? TokenKind::kInteger : TokenKind::kFloat, length);
}

Token Lexer::takeString() {
  for (size_t i = 1; i < rest_.size() && rest_[i] != '\n'; ++i) {
    if (rest_[i] == '"') {
      Token token = take(TokenKind::kString, i + 1, 1);
      token.text = token.text.drop_back();
      return token;
    }
    if (rest_[i] == '\\') ++i;
  }
  return bad("a string without an end on its line");
}

Token Lexer::bad(const char* complaint) {
  Token token = take(TokenKind::kBad, 1);
  token.text = complaint;
  return token;
}

std::optional<std::string> unquote(llvm::StringRef escaped) {
  std::string text;
  text.reserve(escaped.size());
  while (!escaped.empty()) {
    const char first = escaped.front();
    escaped = escaped.drop_front();
    if (first != '\\') {
      text.push_back(first);
      continue;
    }
    if (escaped.empty()) return std::nullopt;
    const char code = escaped.front();
    escaped = escaped.drop_front();
    if (code == '"' || code == '\\') {
      text.push_back(code);
    } else if (code == 'n') {
      text.push_back('\n');
    } else if (code == 'x' && escaped.size() >= 2 && llvm::isHexDigit(escaped[0]) &&
               llvm::isHexDigit(escaped[1])) {
      text.push_back(static_cast<char>(llvm::hexFromNibbles(escaped[0], escaped[1])));
      escaped = escaped.drop_front(2);
    } else {
      return std::nullopt;
    }
  }
  return text;
}

}  // namespace stowage::ir
