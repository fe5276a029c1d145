// SPDX-License-Identifier: Apache-2.0
//
// Writes numbers, strings and tensor types. The text form and the signatures of cost tables agree
// because both use these functions. Output depends on neither locale nor machine. Reading:
// ir/text/parser.h.
#ifndef STOWAGE_IR_TEXT_LITERAL_H_
#define STOWAGE_IR_TEXT_LITERAL_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdint>

#include "ir/graph/type.h"

namespace stowage::ir {

/// The shortest text that reads back to the same bits, always with a '.', an exponent, or as "inf",
/// "-inf", "nan", so that it cannot be taken for an integer.
void writeDouble(llvm::raw_ostream& os, double value);
/// Double-quoted; everything outside printable ASCII as \n or \xHH.
void writeQuoted(llvm::raw_ostream& os, llvm::StringRef text);
/// "[4,8]"
void writeIntegers(llvm::raw_ostream& os, llvm::ArrayRef<int64_t> integers);
/// "f32[4,8] strides=[1,4] offset=2"; strides and offset only where they are not the usual ones.
void writeType(llvm::raw_ostream& os, const TensorType& type);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_TEXT_LITERAL_H_
