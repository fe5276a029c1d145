// SPDX-License-Identifier: Apache-2.0
//
// Writes the arguments of one node, for the text form (with names) and for cost signatures (without
// them): the two differ in how a value and a step scalar are written, and in nothing else.
#ifndef STOWAGE_IR_TEXT_ARGUMENT_PRINTER_H_
#define STOWAGE_IR_TEXT_ARGUMENT_PRINTER_H_

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Support/raw_ostream.h>

#include "ir/graph/graph.h"

namespace stowage::ir {

/// How the things that have names are written.
struct ArgumentStyle {
  llvm::function_ref<void(ValueId)> writeValue;  // gets valid ids only
  llvm::function_ref<void(ScalarId)> writeScalar;
  const char* separator = ", ";
};

class ArgumentPrinter {
 public:
  ArgumentPrinter(llvm::raw_ostream& os, ArgumentStyle style) : os_(os), style_(style) {}
  /// "%x, inout %y, [1, 2]". A written value is marked where it first appears.
  void print(const Node& node);

 private:
  void printArgument(const Argument& argument);
  void printValue(ValueId value);
  void printComplex(const ComplexArg& complex);
  void printWrapped(const WrappedNumberArg& number);
  void printValues(const ValueList& values);
  void printNumbers(const NumberList& numbers);

  llvm::raw_ostream& os_;
  ArgumentStyle style_;
  llvm::SmallDenseMap<int32_t, bool, 4> pendingWrites_;  // value -> whole
};

}  // namespace stowage::ir

#endif  // STOWAGE_IR_TEXT_ARGUMENT_PRINTER_H_
