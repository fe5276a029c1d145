// SPDX-License-Identifier: Apache-2.0
//
// Options of a pass as text: "bucket-bytes=64MiB,largest-first". One OptionReader per pass reads
// the keys it knows and then reports what is left, so that a misspelt option is an error. Sizes
// always carry a unit.
#ifndef STOWAGE_PASSES_MANAGE_PASS_OPTIONS_H_
#define STOWAGE_PASSES_MANAGE_PASS_OPTIONS_H_

#include <llvm/ADT/StringRef.h>

#include <map>
#include <optional>
#include <string>

#include "ir/base/error.h"
#include "ir/base/units.h"

namespace stowage::passes {

/// "64MiB", "1536B": a whole number and one of B, KiB, MiB, GiB, TiB. Nothing for other text.
std::optional<Bytes> parseSize(llvm::StringRef text);
/// The shortest such text that reads back as `bytes`.
std::string printSize(Bytes bytes);

class OptionReader {
 public:
  /// `passName` is used in messages. Errors (from `finish`): kInvalidArgument naming pass and
  /// option.
  OptionReader(llvm::StringRef passName, llvm::StringRef text);

  Bytes readSize(llvm::StringRef key, Bytes defaultValue);
  /// A whole number of at least 0 without a unit.
  int64_t readNumber(llvm::StringRef key, int64_t defaultValue);
  std::string readWord(llvm::StringRef key, std::string defaultValue);
  /// Success if every option was read and well formed.
  ir::Error finish();

 private:
  void fail(const std::string& message);

  std::string passName_;
  std::map<std::string, std::string> values_;
  std::string failure_;
};

}  // namespace stowage::passes

#endif  // STOWAGE_PASSES_MANAGE_PASS_OPTIONS_H_
