// SPDX-License-Identifier: Apache-2.0
//
// The parts of a node's line that stand between its parentheses, and tensor types: grammar in
// tools/docs/text-form.md. Names are looked up in what the graph has declared so far. Returns
// defaults after a failure (ir/text/token_reader.h).
#ifndef STOWAGE_IR_TEXT_ARGUMENT_PARSER_H_
#define STOWAGE_IR_TEXT_ARGUMENT_PARSER_H_

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/StringMap.h>

#include "ir/graph/graph.h"
#include "ir/text/token_reader.h"

namespace stowage::ir {

struct GraphNames {
  llvm::StringMap<ValueId> values;
  llvm::StringMap<ScalarId> scalars;
};

/// "f32[4,8] strides=[1,4] offset=2". The result has an extent.
TensorType parseType(TokenReader& reader);

/// A value by name; fails if it is not declared.
ValueId parseValueReference(TokenReader& reader, const GraphNames& names);

class ArgumentParser {
 public:
  ArgumentParser(TokenReader& reader, const GraphNames& names) : reader_(reader), names_(names) {}
  /// "(%x, inout %y, [1, 2])": fills `args` and `writes` of `node`.
  void parseArguments(Node& node);

 private:
  Argument parseArgument(Node& node);
  Argument parseWord(Node& node);
  Argument parseList(Node& node);
  Argument parseEmptyList(Argument empty);
  ValueArg parseListedValue(Node& node);
  std::variant<bool, int64_t, double, ScalarArg> parseListedNumber();
  ValueArg parseWrite(Node& node, bool whole);
  ComplexArg parseComplex();
  WrappedNumberArg parseWrapped();
  EnumArg parseEnum();
  ScalarArg parseScalar();

  TokenReader& reader_;
  const GraphNames& names_;
  llvm::SmallDenseSet<int32_t, 8> written_;  // by the node at hand
};

}  // namespace stowage::ir

#endif  // STOWAGE_IR_TEXT_ARGUMENT_PARSER_H_
