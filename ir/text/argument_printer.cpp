// SPDX-License-Identifier: Apache-2.0
#include "ir/text/argument_printer.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/base/overloaded.h"
#include "ir/text/literal.h"

namespace stowage::ir {

void ArgumentPrinter::print(const Node& node) {
  pendingWrites_.clear();
  for (const Node::Write& write : node.writes) {
    pendingWrites_.try_emplace(write.value.raw(), write.whole);
  }
  llvm::interleave(
      node.args, [&](const Argument& argument) { printArgument(argument); },
      [&] { os_ << style_.separator; });
}

void ArgumentPrinter::printArgument(const Argument& argument) {
  std::visit(Overloaded{[&](NoneArg) { os_ << "none"; },
                        [&](bool flag) { os_ << (flag ? "true" : "false"); },
                        [&](int64_t integer) { os_ << integer; },
                        [&](double number) { writeDouble(os_, number); },
                        [&](const std::string& text) { writeQuoted(os_, text); },
                        [&](const ComplexArg& complex) { printComplex(complex); },
                        [&](const ScalarArg& scalar) { style_.writeScalar(scalar.scalar); },
                        [&](const EnumArg& enumeration) {
                          os_ << enumeration.kind << '(' << enumeration.text << ')';
                        },
                        [&](const WrappedNumberArg& number) { printWrapped(number); },
                        [&](const ValueArg& value) { printValue(value.value); },
                        [&](const ValueList& values) { printValues(values); },
                        [&](const NumberList& numbers) { printNumbers(numbers); }},
             argument);
}

void ArgumentPrinter::printValue(ValueId value) {
  if (!value.isValid()) {
    os_ << "none";
    return;
  }
  const auto write = pendingWrites_.find(value.raw());
  if (write != pendingWrites_.end()) {
    os_ << (write->second ? "out " : "inout ");
    pendingWrites_.erase(write);
  }
  style_.writeValue(value);
}

void ArgumentPrinter::printComplex(const ComplexArg& complex) {
  os_ << "complex(";
  writeDouble(os_, complex.real);
  os_ << style_.separator;
  writeDouble(os_, complex.imaginary);
  os_ << ')';
}

void ArgumentPrinter::printWrapped(const WrappedNumberArg& number) {
  os_ << "wrapped(" << dtypeName(number.dtype) << ' ';
  std::visit(Overloaded{[&](int64_t integer) { os_ << integer; },
                        [&](double real) { writeDouble(os_, real); },
                        [&](ScalarId scalar) { style_.writeScalar(scalar); }},
             number.value);
  os_ << ')';
}

void ArgumentPrinter::printValues(const ValueList& values) {
  os_ << (values.empty() ? "values[" : "[");
  llvm::interleave(
      values, [&](const ValueArg& value) { printValue(value.value); },
      [&] { os_ << style_.separator; });
  os_ << ']';
}

void ArgumentPrinter::printNumbers(const NumberList& numbers) {
  os_ << (numbers.empty() ? "numbers[" : "[");
  llvm::interleave(
      numbers,
      [&](const auto& element) {
        std::visit(Overloaded{[&](bool flag) { os_ << (flag ? "true" : "false"); },
                              [&](int64_t integer) { os_ << integer; },
                              [&](double number) { writeDouble(os_, number); },
                              [&](const ScalarArg& scalar) { style_.writeScalar(scalar.scalar); }},
                   element);
      },
      [&] { os_ << style_.separator; });
  os_ << ']';
}

}  // namespace stowage::ir
