// SPDX-License-Identifier: Apache-2.0
#include "ir/text/argument_parser.h"

#include <optional>
#include <utility>

namespace stowage::ir {

namespace {

constexpr llvm::StringRef kArgumentKinds =
    "an argument (%value, inout %value, out %value, #scalar, a number, a string, a list, none, "
    "true, false, complex, wrapped, dtype, device, layout or memory_format)";

bool isEnumKind(llvm::StringRef word) {
  return word == "dtype" || word == "device" || word == "layout" || word == "memory_format";
}

bool startsValue(const Token& token) {
  return token.kind == TokenKind::kValue || token.isWord("inout") || token.isWord("out") ||
         token.isWord("none");
}

}  // namespace

TensorType parseType(TokenReader& reader) {
  const Token start = reader.peek();
  const llvm::StringRef dtypeText = reader.expectKind(TokenKind::kWord, "a dtype");
  TensorType type;
  if (const std::optional<DType> dtype = findDType(dtypeText)) {
    type.dtype = *dtype;
  } else {
    reader.fail(start, "found '" + dtypeText.str() + "', expected a dtype");
  }
  type.sizes = reader.expectIntegers();
  const std::optional<llvm::SmallVector<int64_t, 4>> dense = findContiguousStrides(type.sizes);
  if (!dense) {
    reader.fail(start, "the sizes of a tensor are negative or their product exceeds 64 bits");
    return {};
  }
  type.strides = *dense;
  if (reader.acceptWord("strides")) {
    reader.expect('=');
    type.strides = reader.expectIntegers();
  }
  if (reader.acceptWord("offset")) {
    reader.expect('=');
    type.offset = reader.expectNonNegative("an offset in elements");
  }
  if (reader.failed()) return {};
  if (type.strides.size() != type.sizes.size()) {
    reader.fail(start, "found " + std::to_string(type.strides.size()) + " strides, expected " +
                           std::to_string(type.sizes.size()));
  } else if (!type.findExtentBytes()) {
    reader.fail(start, "a stride is negative or the extent of the tensor exceeds 64 bits");
  }
  return reader.failed() ? TensorType{} : type;
}

ValueId parseValueReference(TokenReader& reader, const GraphNames& names) {
  const Token token = reader.peek();
  const llvm::StringRef name = reader.expectKind(TokenKind::kValue, "a value");
  const auto entry = names.values.find(name);
  if (entry != names.values.end()) return entry->second;
  reader.fail(token, "found '%" + name.str() + "', expected a value that is declared above");
  return ValueId();
}

void ArgumentParser::parseArguments(Node& node) {
  written_.clear();
  reader_.expect('(');
  if (reader_.accept(')')) return;
  do {
    node.args.push_back(parseArgument(node));
  } while (reader_.accept(','));
  reader_.expect(')');
}

Argument ArgumentParser::parseArgument(Node& node) {
  const Token& token = reader_.peek();
  switch (token.kind) {
    case TokenKind::kValue:
      return ValueArg{parseValueReference(reader_, names_)};
    case TokenKind::kScalar:
      return parseScalar();
    case TokenKind::kInteger:
      return reader_.expectInteger();
    case TokenKind::kFloat:
      return reader_.expectNumber();
    case TokenKind::kString:
      return reader_.expectString();
    case TokenKind::kWord:
      return parseWord(node);
    default:
      if (token.isSign('[')) return parseList(node);
      reader_.failExpected(kArgumentKinds);
      return NoneArg{};
  }
}

Argument ArgumentParser::parseWord(Node& node) {
  const llvm::StringRef word = reader_.peek().text;
  if (word == "inf" || word == "nan") return reader_.expectNumber();
  if (isEnumKind(word)) return parseEnum();
  if (reader_.acceptWord("none")) return NoneArg{};
  if (reader_.acceptWord("true")) return true;
  if (reader_.acceptWord("false")) return false;
  if (reader_.acceptWord("inout")) return parseWrite(node, false);
  if (reader_.acceptWord("out")) return parseWrite(node, true);
  if (reader_.acceptWord("complex")) return parseComplex();
  if (reader_.acceptWord("wrapped")) return parseWrapped();
  if (reader_.acceptWord("values")) return parseEmptyList(ValueList());
  if (reader_.acceptWord("numbers")) return parseEmptyList(NumberList());
  reader_.failExpected(kArgumentKinds);
  return NoneArg{};
}

Argument ArgumentParser::parseEmptyList(Argument empty) {
  reader_.expect('[');
  reader_.expect(']');
  return empty;
}

Argument ArgumentParser::parseList(Node& node) {
  reader_.expect('[');
  if (reader_.peek().isSign(']')) {
    reader_.failExpected("an element (an empty list is values[] or numbers[])");
  }
  if (startsValue(reader_.peek())) {
    ValueList values;
    do {
      values.push_back(parseListedValue(node));
    } while (reader_.accept(','));
    reader_.expect(']');
    return values;
  }
  NumberList numbers;
  do {
    numbers.push_back(parseListedNumber());
  } while (reader_.accept(','));
  reader_.expect(']');
  return numbers;
}

ValueArg ArgumentParser::parseListedValue(Node& node) {
  if (reader_.acceptWord("none")) return {};
  if (reader_.acceptWord("inout")) return parseWrite(node, false);
  if (reader_.acceptWord("out")) return parseWrite(node, true);
  return {parseValueReference(reader_, names_)};
}

std::variant<bool, int64_t, double, ScalarArg> ArgumentParser::parseListedNumber() {
  if (reader_.acceptWord("true")) return true;
  if (reader_.acceptWord("false")) return false;
  const Token& token = reader_.peek();
  if (token.kind == TokenKind::kScalar) return parseScalar();
  if (token.kind == TokenKind::kInteger) return reader_.expectInteger();
  if (token.kind == TokenKind::kFloat || token.isWord("inf") || token.isWord("nan")) {
    return reader_.expectNumber();
  }
  reader_.failExpected("a number, true, false or a step scalar");
  return false;
}

ValueArg ArgumentParser::parseWrite(Node& node, bool whole) {
  const Token token = reader_.peek();
  const ValueId value = parseValueReference(reader_, names_);
  if (!written_.insert(value.raw()).second) {
    reader_.fail(token, "found '%" + token.text.str() + "' written a second time by one node");
  }
  node.writes.push_back({.value = value, .whole = whole});
  return {value};
}

ComplexArg ArgumentParser::parseComplex() {
  ComplexArg complex;
  reader_.expect('(');
  complex.real = reader_.expectNumber();
  reader_.expect(',');
  complex.imaginary = reader_.expectNumber();
  reader_.expect(')');
  return complex;
}

WrappedNumberArg ArgumentParser::parseWrapped() {
  WrappedNumberArg number;
  reader_.expect('(');
  const Token token = reader_.peek();
  const llvm::StringRef dtypeText = reader_.expectKind(TokenKind::kWord, "a dtype");
  const std::optional<DType> dtype = findDType(dtypeText);
  if (dtype) {
    number.dtype = *dtype;
  } else {
    reader_.fail(token, "found '" + dtypeText.str() + "', expected a dtype");
  }
  if (reader_.peek().kind == TokenKind::kScalar) {
    number.value = parseScalar().scalar;
  } else if (reader_.peek().kind == TokenKind::kInteger) {
    number.value = reader_.expectInteger();
  } else {
    number.value = reader_.expectNumber();
  }
  reader_.expect(')');
  return number;
}

EnumArg ArgumentParser::parseEnum() {
  EnumArg argument{.kind = reader_.next().text.str()};
  reader_.expect('(');
  argument.text = reader_.expectKind(TokenKind::kWord, "a name").str();
  if (reader_.accept(':')) {
    argument.text += ":" + std::to_string(reader_.expectNonNegative("a device number"));
  }
  reader_.expect(')');
  return argument;
}

ScalarArg ArgumentParser::parseScalar() {
  const Token token = reader_.peek();
  const llvm::StringRef name = reader_.expectKind(TokenKind::kScalar, "a step scalar");
  const auto entry = names_.scalars.find(name);
  if (entry != names_.scalars.end()) return {entry->second};
  reader_.fail(token, "found '#" + name.str() + "', expected a step scalar that is declared above");
  return {};
}

}  // namespace stowage::ir
