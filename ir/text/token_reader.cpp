// SPDX-License-Identifier: Apache-2.0
#include "ir/text/token_reader.h"

#include <llvm/ADT/StringExtras.h>

#include <cassert>
#include <charconv>
#include <limits>
#include <utility>

namespace stowage::ir {

namespace {

// Long tokens of hostile input are cut in messages.
constexpr size_t kShownCharacters = 40;

std::string describe(const Token& token) {
  const llvm::StringRef shown = token.text.take_front(kShownCharacters);
  const std::string text = shown.str() + (shown.size() < token.text.size() ? "..." : "");
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end of the text";
    case TokenKind::kValue:
      return "'%" + text + "'";
    case TokenKind::kGraph:
      return "'@" + text + "'";
    case TokenKind::kScalar:
      return "'#" + text + "'";
    case TokenKind::kString:
      return "\"" + text + "\"";
    case TokenKind::kBad:
      return text;
    default:
      return "'" + text + "'";
  }
}

}  // namespace

TokenReader::TokenReader(llvm::StringRef text, std::string fileName)
    : lexer_(text), fileName_(std::move(fileName)), current_(lexer_.next()) {}

Token TokenReader::next() {
  const Token taken = current_;
  if (!failed()) current_ = lexer_.next();
  return taken;
}

bool TokenReader::accept(char sign) {
  if (!current_.isSign(sign)) return false;
  next();
  return true;
}

bool TokenReader::acceptWord(llvm::StringRef word) {
  if (!current_.isWord(word)) return false;
  next();
  return true;
}

void TokenReader::expect(char sign) {
  if (!accept(sign)) failExpected("'" + std::string(1, sign) + "'");
}

void TokenReader::expectWord(llvm::StringRef word) {
  if (!acceptWord(word)) failExpected("'" + word.str() + "'");
}

llvm::StringRef TokenReader::expectKind(TokenKind kind, llvm::StringRef what) {
  if (current_.kind == kind) return next().text;
  failExpected(what);
  return "";
}

std::string TokenReader::expectString() {
  const Token token = current_;
  const llvm::StringRef escaped = expectKind(TokenKind::kString, "a string");
  if (failed()) return "";
  std::optional<std::string> text = unquote(escaped);
  if (text) return std::move(*text);
  fail(token, "found an unknown escape in a string, expected \\\", \\\\, \\n or \\xHH");
  return "";
}

int64_t TokenReader::expectInteger() {
  const Token token = current_;
  const llvm::StringRef digits = expectKind(TokenKind::kInteger, "an integer");
  int64_t value = 0;
  if (failed()) return value;
  const auto [end, code] = std::from_chars(digits.begin(), digits.end(), value);
  if (code == std::errc() && end == digits.end()) return value;
  fail(token, "found " + describe(token) + ", expected an integer of 64 bits");
  return 0;
}

int64_t TokenReader::expectNonNegative(llvm::StringRef what) {
  const Token token = current_;
  const int64_t value = expectInteger();
  if (value >= 0) return value;
  fail(token, "found " + describe(token) + ", expected " + what.str() + " that is not negative");
  return 0;
}

double TokenReader::expectNumber() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (acceptWord("inf")) return kInfinity;
  if (acceptWord("nan")) return std::numeric_limits<double>::quiet_NaN();
  const Token token = current_;
  const llvm::StringRef digits = expectKind(TokenKind::kFloat, "a floating point number");
  if (digits == "-inf") return -kInfinity;
  double value = 0;
  if (failed()) return value;
  const auto [end, code] = std::from_chars(digits.begin(), digits.end(), value);
  if (code == std::errc() && end == digits.end()) return value;
  fail(token, "found " + describe(token) + ", expected a number within the range of f64");
  return 0;
}

llvm::SmallVector<int64_t, 4> TokenReader::expectIntegers() {
  llvm::SmallVector<int64_t, 4> integers;
  expect('[');
  if (accept(']')) return integers;
  do {
    integers.push_back(expectInteger());
  } while (accept(','));
  expect(']');
  return integers;
}

int32_t TokenReader::expectNumbered(char prefix, llvm::StringRef what) {
  int32_t number = 0;
  llvm::StringRef digits = current_.text;
  const bool fits = current_.kind == TokenKind::kWord &&
                    digits.consume_front(llvm::StringRef(&prefix, 1)) &&
                    llvm::all_of(digits, llvm::isDigit) && !digits.getAsInteger(10, number);
  if (fits) {
    next();
    return number;
  }
  failExpected(what);
  return -1;
}

void TokenReader::expectLineStart() {
  if (!current_.startsLine && !atEnd()) failExpected("a new line");
}

void TokenReader::fail(const Token& where, std::string message) {
  if (failed()) return;
  failure_ = PlanError(ErrorCode::kParse, std::move(message));
  failure_->at(locationOf(where));
  current_ = {.kind = TokenKind::kEnd, .line = where.line, .column = where.column};
}

void TokenReader::failExpected(llvm::StringRef what) {
  fail(current_, "found " + describe(current_) + ", expected " + what.str());
}

Error TokenReader::takeError() {
  assert(failed() && "no error to take");
  return makeError(std::move(*failure_));
}

SourceLocation TokenReader::locationOf(const Token& token) const {
  return {.file = fileName_, .line = token.line, .column = token.column};
}

}  // namespace stowage::ir
