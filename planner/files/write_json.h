// SPDX-License-Identifier: Apache-2.0
//
// Writes JSON as it goes, without a tree: integers, strings, and nothing that could differ between
// two runs. Layout is the caller's: a line break is written where it asks for one. Strings must be
// UTF-8; `failed` tells afterwards.
#ifndef STOWAGE_PLANNER_FILES_WRITE_JSON_H_
#define STOWAGE_PLANNER_FILES_WRITE_JSON_H_

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/units.h"

namespace stowage::planner {

class JsonWriter {
 public:
  explicit JsonWriter(llvm::raw_ostream& os) : os_(os) {}

  JsonWriter& beginObject() { return open('{'); }
  JsonWriter& endObject() { return close('}'); }
  JsonWriter& beginArray() { return open('['); }
  JsonWriter& endArray() { return close(']'); }
  /// Before the next key or value, or before the end of the enclosing one.
  JsonWriter& breakLine();

  JsonWriter& key(llvm::StringRef name);
  JsonWriter& value(int64_t number);
  JsonWriter& value(llvm::StringRef text);
  JsonWriter& value(const char* text) { return value(llvm::StringRef(text)); }
  JsonWriter& value(const std::string& text) { return value(llvm::StringRef(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(Bytes bytes) { return value(bytes.value()); }
  JsonWriter& value(Nanoseconds time) { return value(time.value()); }
  JsonWriter& value(BytesPerSecond rate) { return value(rate.value()); }

  template <typename T>
  JsonWriter& field(llvm::StringRef name, const T& content) {
    return key(name).value(content);
  }
  /// An array of ids.
  template <typename Ids>
  JsonWriter& idField(llvm::StringRef name, const Ids& ids) {
    key(name).beginArray();
    for (const auto id : ids) value(int64_t{id.raw()});
    return endArray();
  }

  /// A string that is not UTF-8 was written; the text is not JSON.
  bool failed() const { return failed_; }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void quote(llvm::StringRef text);

  llvm::raw_ostream& os_;
  std::vector<bool> hasContent_;  // per open object or array
  bool afterKey_ = false;
  bool breakPending_ = false;
  bool failed_ = false;
};

}  // namespace stowage::planner

#endif  // STOWAGE_PLANNER_FILES_WRITE_JSON_H_
