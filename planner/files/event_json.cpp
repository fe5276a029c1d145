// SPDX-License-Identifier: Apache-2.0
#include "planner/files/event_json.h"

#include <cstddef>
#include <iterator>
#include <utility>

namespace stowage::planner {

namespace {

constexpr size_t kDeepest = 16;

/// Reads a text and tells how far.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  const char** reached_;
};

class Collector : public nlohmann::json_sax<Json> {
 public:
  Collector(const JsonEvents& events, ParsedJson& result) : events_(events), result_(result) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool flag) override { return add(flag); }
  bool number_integer(int64_t number) override { return add(number); }
  bool number_unsigned(uint64_t number) override { return add(number); }
  bool number_float(double number, const std::string& /*text*/) override { return add(number); }
  bool binary(binary_t& /*bytes*/) override { return fail("found binary data, expected JSON"); }
  bool string(std::string& text) override {
    if (open_.size() == 1 && !events_.onText(key_, text)) return stop();
    return add(std::move(text));
  }

  bool start_object(size_t /*size*/) override { return enter(Json::object()); }
  bool start_array(size_t /*size*/) override {
    if (open_.empty()) return fail("found an array, expected an object");
    if (open_.size() == 1 && events_.isLong(key_)) {
      longKey_ = key_;
      index_ = 0;
    }
    return enter(Json::array());
  }
  bool end_object() override { return leave(); }
  bool end_array() override {
    if (open_.size() == 2) longKey_.reset();
    return leave();
  }

  bool key(std::string& key) override {
    if (open_.back()->contains(key)) return fail("found key '" + key + "' twice, expected it once");
    key_ = std::move(key);
    return true;
  }

  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception...] parse error at line 1, column 5: syntax error ...": the place is ours.
    const llvm::StringRef text = error.what();
    const size_t begin = text.find(": ");
    return fail(begin == llvm::StringRef::npos ? text.str() : text.drop_front(begin + 2).str());
  }

 private:
  bool stop() {
    result_.stopped = true;
    return false;
  }
  bool fail(std::string message) {
    if (!result_.fault) result_.fault = JsonFault{"", std::move(message)};
    return false;
  }

  /// Is what comes next an element of a long array?
  bool isElement() const { return longKey_ && open_.size() == 2; }

  /// Puts a value to its place; gives where it is.
  Json* place(Json value) {
    if (open_.empty()) return &(result_.header = std::move(value));
    if (isElement()) return &(element_ = std::move(value));
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    return &((*open_.back())[key_] = std::move(value));
  }

  bool add(Json value) {
    if (open_.empty()) return fail("found " + excerpt(value) + ", expected an object");
    place(std::move(value));
    return isElement() ? passElement() : true;
  }

  bool enter(Json container) {
    if (open_.size() == kDeepest) {
      return fail("found values nested deeper than " + std::to_string(kDeepest) +
                  ", expected no such thing");
    }
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool leave() {
    open_.pop_back();
    return isElement() ? passElement() : true;
  }

  bool passElement() { return events_.onElement(*longKey_, index_++, element_) || stop(); }

  const JsonEvents& events_;
  ParsedJson& result_;
  std::vector<Json*> open_;  // objects and arrays around the next value
  std::string key_;          // of the next member
  std::optional<std::string> longKey_;
  size_t index_ = 0;  // of the next element of a long array
  Json element_;
};

}  // namespace

ParsedJson parseJson(llvm::StringRef text, const JsonEvents& events) {
  ParsedJson result;
  Collector collector(events, result);
  const char* reached = text.begin();
  Json::sax_parse(CountingIterator(text.begin(), &reached), CountingIterator(text.end(), &reached),
                  &collector);
  result.position = static_cast<size_t>(reached - text.begin());
  return result;
}

}  // namespace stowage::planner
