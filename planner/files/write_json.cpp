// SPDX-License-Identifier: Apache-2.0
#include "planner/files/write_json.h"

#include <llvm/Support/Format.h>
#include <llvm/Support/JSON.h>

namespace stowage::planner {

void JsonWriter::separate() {
  if (afterKey_) {
    afterKey_ = false;
    return;
  }
  if (!hasContent_.empty()) {
    if (hasContent_.back()) os_ << ',';
    hasContent_.back() = true;
  }
  if (breakPending_) os_ << '\n';
  breakPending_ = false;
}

JsonWriter& JsonWriter::breakLine() {
  breakPending_ = true;
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  os_ << bracket;
  hasContent_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  if (breakPending_) os_ << '\n';
  breakPending_ = false;
  hasContent_.pop_back();
  os_ << bracket;
  return *this;
}

JsonWriter& JsonWriter::key(llvm::StringRef name) {
  separate();
  quote(name);
  os_ << ':';
  afterKey_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(int64_t number) {
  separate();
  os_ << number;
  return *this;
}

JsonWriter& JsonWriter::value(llvm::StringRef text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  separate();
  os_ << (flag ? "true" : "false");
  return *this;
}

void JsonWriter::quote(llvm::StringRef text) {
  failed_ = failed_ || !llvm::json::isUTF8(text);
  os_ << '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      os_ << '\\' << c;
    } else if (c == '\n') {
      os_ << "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      os_ << llvm::format("\\u%04x", byte);
    } else {
      os_ << c;
    }
  }
  os_ << '"';
}

}  // namespace stowage::planner
