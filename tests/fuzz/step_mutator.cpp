// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/step_mutator.h"

#include <algorithm>
#include <array>
#include <map>
#include <regex>
#include <sstream>

#include "tests/fuzz/json_mutator.h"

namespace stowage::tests {

namespace {

using Lines = std::vector<std::string>;

constexpr const char* kType =
    R"((f64|f32|f16|bf16|f8e4m3|f8e5m2|i64|i32|i16|i8|u8|u64|bool|c64|c128)\[([0-9,]*)\])";

/// A part of a text.
struct Span {
  size_t begin = 0;
  size_t length = 0;
};

std::vector<Span> findAll(const std::string& text, const std::regex& pattern, int group = 0) {
  std::vector<Span> found;
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) {
    const auto index = static_cast<size_t>(group);
    found.push_back(
        {static_cast<size_t>(i->position(index)), static_cast<size_t>(i->length(index))});
  }
  return found;
}

/// Replaces one of the matches of `pattern`; false if there is none.
template <typename Change>
bool changeOne(std::string& text, const char* pattern, Random& random, Change change,
               int group = 0) {
  const std::vector<Span> all = findAll(text, std::regex(pattern), group);
  if (all.empty()) return false;
  const Span span = random.pick(all);
  text.replace(span.begin, span.length, change(text.substr(span.begin, span.length)));
  return true;
}

std::vector<int64_t> parseNumbers(const std::string& text) {
  std::vector<int64_t> numbers;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    numbers.push_back(static_cast<int64_t>(std::strtoll(part.c_str(), nullptr, 10)));
  }
  return numbers;
}

std::string toList(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

/// Sizes close to those that are there, so that the rest of the file still parses.
std::string otherSizes(const std::string& text, Random& random) {
  std::vector<int64_t> sizes = parseNumbers(text);
  if (sizes.empty()) return random.chance(50) ? "1" : std::to_string(random.between(0, 9));
  const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(sizes.size()) - 1));
  switch (random.between(0, 7)) {
    case 0:
      sizes[at] = otherNumber(sizes[at], random);
      break;
    case 1:
      sizes[at] += random.chance(50) ? 1 : -1;
      break;
    case 2:
      sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(at));
      break;
    case 3:
      sizes.insert(sizes.begin() + static_cast<ptrdiff_t>(at), random.between(0, 3));
      break;
    case 4:
      std::reverse(sizes.begin(), sizes.end());
      break;
    case 5: {  // as many elements in one dimension
      int64_t product = 1;
      for (const int64_t size : sizes) product *= std::clamp<int64_t>(size, 0, 4096);
      sizes = {product};
      break;
    }
    case 6:
      sizes = {random.between(0, 9)};
      break;
    default:
      sizes[at] = random.between(0, 4) * std::max<int64_t>(sizes[at], 1);
  }
  return toList(sizes);
}

/// Of what the step is given, half the time: nothing in the file contradicts that.
bool changeSizes(std::string& text, Random& random) {
  static const std::string kGiven =
      std::string(
          R"(\n  (?:input|parameter|state|gradient|buffer|frozen|step_counter) %[^\n]* : )") +
      kType;
  if (random.chance(50)) {
    const auto other = [&](const std::string& old) { return otherSizes(old, random); };
    if (changeOne(text, kGiven.c_str(), random, other, 2)) return true;
  }
  return changeOne(
      text, kType, random, [&](const std::string& old) { return otherSizes(old, random); }, 2);
}

bool changeDType(std::string& text, Random& random) {
  static constexpr std::array<const char*, 9> kTypes = {"f64", "f32", "bf16", "f16", "i64",
                                                        "i32", "u8",  "bool", "c64"};
  return changeOne(
      text, kType, random, [&](const std::string&) { return random.pick(kTypes); }, 1);
}

bool changeStrides(std::string& text, Random& random) {
  if (random.chance(50)) {
    return changeOne(
        text, R"((strides=\[|offset=|bytes=|storage=|value=)([0-9,]+))", random,
        [&](const std::string& old) {
          std::vector<int64_t> numbers = parseNumbers(old);
          const auto at = random.between(0, static_cast<int64_t>(numbers.size()) - 1);
          int64_t& number = numbers[static_cast<size_t>(at)];
          number = random.chance(60) ? random.between(0, 9) : otherNumber(number, random);
          return toList(numbers);
        },
        2);
  }
  return changeOne(text, kType, random, [&](const std::string& old) {
    const size_t dimensions = parseNumbers(old.substr(old.find('[') + 1)).size();
    std::vector<int64_t> strides;
    for (size_t i = 0; i < dimensions; ++i) strides.push_back(random.between(0, 4));
    switch (random.between(0, 2)) {
      case 0:
        return old + " strides=[" + toList(strides) + "]";
      case 1:
        return old + " offset=" + std::to_string(random.uneven(1, 1 << 20));
      default:
        return old + " bytes=" + std::to_string(random.uneven(1, 1 << 20));
    }
  });
}

bool changeRole(std::string& text, Random& random) {
  static constexpr std::array<const char*, 8> kRoles = {
      "input", "frozen", "parameter", "state", "gradient", "buffer", "step_counter", "view"};
  static constexpr std::array<const char*, 6> kMarkers = {"persistent", "transient", "output",
                                                          "host",       "output",    "frozen"};
  switch (random.between(0, 2)) {
    case 0:
      return changeOne(
          text, R"(\n  (input|frozen|parameter|state|gradient|buffer|step_counter|view) %)", random,
          [&](const std::string&) { return random.pick(kRoles); }, 1);
    case 1:
      return changeOne(text, R"( (persistent|transient|output|host)(?= ))", random,
                       [&](const std::string&) -> std::string {
                         return random.chance(60) ? "" : std::string(" ") + random.pick(kMarkers);
                       });
    default:
      return changeOne(text, R"( : (?=[a-z]))", random, [&](const std::string& old) {
        return std::string(" ") + random.pick(kMarkers) + old;
      });
  }
}

/// A call of the step: where its op and each argument are.
struct Call {
  Span op;
  std::vector<Span> arguments;
};

/// Arguments from `at`, behind the parenthesis, to the one that closes it.
std::vector<Span> splitArguments(const std::string& text, size_t at) {
  std::vector<Span> parts;
  int depth = 0;
  size_t begin = at;
  bool quoted = false;
  for (size_t i = at; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted) continue;
    if (text[i] == '(' || text[i] == '[') ++depth;
    const bool closes = text[i] == ')' || text[i] == ']';
    if (depth == 0 && (closes || text[i] == ',')) {
      if (i > begin) parts.push_back({begin, i - begin});
      if (closes) break;
      begin = i + 2;
    }
    if (closes) --depth;
  }
  return parts;
}

std::vector<Call> parseCalls(const std::string& text) {
  static const std::regex kCall(R"(([a-z_0-9]+\.[A-Za-z_0-9.]+)\()");
  std::vector<Call> calls;
  for (const Span span : findAll(text, kCall, 1)) {
    calls.push_back({span, splitArguments(text, span.begin + span.length + 1)});
  }
  return calls;
}

bool changeMarker(std::string& text, Random& random) {
  static constexpr std::array<const char*, 3> kMarkers = {"in ", "out ", "inout "};
  if (random.chance(40)) {
    return changeOne(text, R"((inout |out )(?=%))", random,
                     [&](const std::string& old) -> std::string {
                       if (random.chance(40)) return "";
                       return old == "out " ? "inout " : "out ";
                     });
  }
  return changeOne(
      text, R"([(\[ ](%[A-Za-z0-9_.]+)(?=[,\])]))", random,
      [&](const std::string& old) { return random.pick(kMarkers) + old; }, 1);
}

bool changeOp(std::string& text, const std::vector<KnownCall>& known, Random& random) {
  static const std::vector<std::string> kHostile = {
      "aten.from_file.default",      "aten.resize_.default",
      "aten.set_.source_Storage",    "aten.as_strided_.default",
      "aten.item.default",           "aten.manual_seed.default",
      "aten.random_.default",        "aten._local_scalar_dense.default",
      "prims.device_put.default",    "aten.set_data.default",
      "aten.requires_grad_.default", "aten.nonzero.default",
      "aten.as_strided.default",     "aten.resize.default",
      "aten.empty_strided.default",  "c10d.allreduce_.default",
      "aten.record_stream.default",  "aten.index_put_.default",
      "aten.scatter_.src",           "aten.index_select.default"};
  const std::vector<Call> calls = parseCalls(text);
  if (calls.empty()) return false;
  const Call& call = random.pick(calls);
  std::string op;
  if (random.chance(12)) {
    op = random.pick(kHostile);
  } else {
    std::vector<std::string> candidates;
    for (const KnownCall& other : known) {
      const bool fits = other.arguments == call.arguments.size();
      if (fits || random.chance(10)) candidates.push_back(other.op);
    }
    if (candidates.empty()) return false;
    op = random.pick(candidates);
  }
  text.replace(call.op.begin, call.op.length, op);
  return true;
}

/// Values by name, with the type that their declaration states: "f32[4,6]".
std::map<std::string, std::string> findTypes(const std::string& text) {
  static const std::regex kDeclared(std::string(R"((%[A-Za-z0-9_.]+)(?: [^:%\n(]*)? : )") + kType);
  std::map<std::string, std::string> types;
  for (std::sregex_iterator i(text.begin(), text.end(), kDeclared), end; i != end; ++i) {
    types[(*i)[1]] = (*i)[2].str() + "[" + (*i)[3].str() + "]";
  }
  return types;
}

/// Those whose type is that of `name`, or as much of it as its element type.
std::vector<std::string> findAlike(const std::string& text, const std::string& name, bool whole) {
  const std::map<std::string, std::string> types = findTypes(text);
  std::vector<std::string> alike;
  const auto own = types.find(name);
  if (own == types.end()) return alike;
  const size_t part = whole ? own->second.size() : own->second.find('[') + 1;
  for (const auto& [other, type] : types) {
    const bool fits = type.compare(0, part, own->second, 0, part) == 0;
    if (fits && other != name) alike.push_back(other);
  }
  return alike;
}

std::string otherArgument(const std::string& old, const std::vector<std::string>& values,
                          const std::string& text, Random& random) {
  static const std::vector<std::string> kWords = {"none",
                                                  "true",
                                                  "false",
                                                  "0",
                                                  "1",
                                                  "-1",
                                                  "2",
                                                  "0.5",
                                                  "nan",
                                                  "inf",
                                                  "-inf",
                                                  "1e308",
                                                  "[]",
                                                  "[0]",
                                                  "[1, 1]",
                                                  "[-1]",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "\"sum\"",
                                                  "dtype(f64)",
                                                  "dtype(bool)",
                                                  "device(\"cuda\")",
                                                  "device(\"cpu\")",
                                                  "complex(1, 2)",
                                                  "values[]",
                                                  "numbers[]",
                                                  "#lr",
                                                  "[0, 1, 2, 3, 4, 5, 6, 7]"};
  const bool isValue = old.find('%') != std::string::npos;
  if (isValue && !values.empty() && random.chance(75)) {
    const size_t at = old.find('%');
    size_t end = at + 1;
    while (end < old.size() && (std::isalnum(static_cast<unsigned char>(old[end])) != 0 ||
                                old[end] == '_' || old[end] == '.')) {
      ++end;
    }
    const std::string name = old.substr(at, end - at);
    std::vector<std::string> alike;
    if (random.chance(65)) alike = findAlike(text, name, random.chance(50));
    return old.substr(0, at) + random.pick(alike.empty() ? values : alike) + old.substr(end);
  }
  const size_t digit = old.find_first_of("0123456789");
  if (!isValue && digit != std::string::npos && random.chance(60)) {
    const size_t end = std::min(old.find_first_not_of("0123456789", digit), old.size());
    const int64_t number = std::strtoll(old.c_str() + digit, nullptr, 10);
    return old.substr(0, digit) + std::to_string(otherNumber(number, random)) + old.substr(end);
  }
  return random.pick(kWords);
}

bool changeArgument(std::string& text, Random& random) {
  const std::vector<Call> calls = parseCalls(text);
  if (calls.empty()) return false;
  const Call& call = random.pick(calls);
  if (call.arguments.empty()) return false;
  std::vector<std::string> values;
  for (const Span span : findAll(text, std::regex(R"(%[A-Za-z0-9_.]+)"))) {
    values.push_back(text.substr(span.begin, span.length));
  }
  const Span span = random.pick(call.arguments);
  const std::string old = text.substr(span.begin, span.length);
  switch (random.between(0, 9)) {
    case 0: {  // with the comma before or after it
      const bool isFirst = span.begin == call.arguments.front().begin;
      const bool isOnly = call.arguments.size() == 1;
      text.erase(isFirst || isOnly ? span.begin : span.begin - 2,
                 isOnly ? span.length : span.length + 2);
      return true;
    }
    case 1:
      text.insert(span.begin, otherArgument(old, values, text, random) + ", ");
      return true;
    case 2: {
      const Span other = random.pick(call.arguments);
      text.replace(span.begin, span.length, text.substr(other.begin, other.length));
      return true;
    }
    default:
      text.replace(span.begin, span.length, otherArgument(old, values, text, random));
      return true;
  }
}

bool changeLines(std::string& text, Random& random) {
  Lines lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  if (lines.size() < 4) return false;
  const int64_t last = static_cast<int64_t>(lines.size()) - 2;
  const int64_t a = random.between(1, last);
  const int64_t b = random.between(1, last);
  switch (random.between(0, 3)) {
    case 0:
      lines.erase(lines.begin() + a);
      break;
    case 1:
      lines.insert(lines.begin() + b, std::string(lines[static_cast<size_t>(a)]));
      break;
    case 2:
      std::swap(lines[static_cast<size_t>(a)], lines[static_cast<size_t>(b)]);
      break;
    default:
      std::swap(lines[static_cast<size_t>(a)], lines[static_cast<size_t>(std::min(a + 1, last))]);
  }
  text.clear();
  for (const std::string& line : lines) text += line + "\n";
  return true;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

bool changeName(std::string& text, Random& random) {
  return changeOne(text, R"re("[^"\n]*")re", random,
                   [&](const std::string&) { return quoted(hostileText(random)); });
}

bool changeHeader(std::string& text, Random& random) {
  static constexpr std::array<const char*, 12> kWords = {
      " nondeterministic",    " steps=9223372036854775807",
      " version=2",           " device=\"cuda\"",
      " target=\"h200\"",     " recipe=\"gpt2 layers=1000000\"",
      " recipe=\"../x.pt2\"", " recipe=\"gpt2 hidden=2147483647\"",
      " target=\"nothing\"",  " steps=2",
      " recipe=\"/\"",        " recipe=\"lstm\""};
  const size_t end = text.find(" {\n");
  if (end == std::string::npos) return false;
  const std::string word = random.pick(kWords);
  const size_t same = text.find(word.substr(0, word.find('=')));
  if (same < end) {
    const size_t next = std::min(text.find(' ', same + 1), end);
    text.replace(same, next - same, word);
  } else {
    text.insert(end, word);
  }
  return true;
}

bool changeScalar(std::string& text, Random& random) {
  static constexpr std::array<const char*, 8> kNumbers = {"nan", "inf", "-inf",   "1e308",
                                                          "0",   "-1",  "5e-324", "0.5"};
  return changeOne(
      text, R"( = (-?[0-9][0-9.e+-]*)\n)", random,
      [&](const std::string&) { return random.pick(kNumbers); }, 1);
}

bool changeBytes(std::string& text, Random& random) {
  const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(text.size()) - 1));
  if (random.chance(70)) {
    text[at] = static_cast<char>(random.bits());
  } else if (random.chance(50)) {
    text.erase(at, static_cast<size_t>(random.uneven(1, 60)));
  } else {
    text.insert(at, hostileText(random));
  }
  return true;
}

void dropChecksum(std::string& text) {
  const size_t at = text.rfind("// checksum ");
  if (at != std::string::npos) text.resize(at);
}

bool changeOnce(std::string& text, const std::vector<KnownCall>& known, Random& random,
                std::string& kind) {
  const int64_t draw = random.between(0, 99);
  const auto say = [&](const char* what, bool changed) {
    if (changed) kind += std::string(what) + " ";
    return changed;
  };
  if (draw < 18) return say("sizes", changeSizes(text, random));
  if (draw < 25) return say("dtype", changeDType(text, random));
  if (draw < 32) return say("strides", changeStrides(text, random));
  if (draw < 38) return say("role", changeRole(text, random));
  if (draw < 50) return say("marker", changeMarker(text, random));
  if (draw < 65) return say("op", changeOp(text, known, random));
  if (draw < 82) return say("argument", changeArgument(text, random));
  if (draw < 88) return say("statements", changeLines(text, random));
  if (draw < 91) return say("name", changeName(text, random));
  if (draw < 94) return say("header", changeHeader(text, random));
  if (draw < 96) return say("scalar", changeScalar(text, random));
  return say("bytes", changeBytes(text, random));
}

}  // namespace

std::vector<KnownCall> findCalls(const std::vector<std::string>& steps) {
  std::vector<KnownCall> known;
  for (const std::string& step : steps) {
    for (const Call& call : parseCalls(step)) {
      known.push_back({step.substr(call.op.begin, call.op.length), call.arguments.size()});
    }
  }
  return known;
}

std::string mutateStep(const std::string& step, const std::vector<KnownCall>& calls, Random& random,
                       std::string& kind) {
  std::string text = step;
  dropChecksum(text);
  const int64_t times = random.chance(70) ? 1 : random.between(2, 4);
  for (int64_t done = 0; done < times;) {
    if (changeOnce(text, calls, random, kind)) ++done;
  }
  return text;
}

}  // namespace stowage::tests
