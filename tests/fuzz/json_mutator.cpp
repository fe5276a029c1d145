// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/json_mutator.h"

#include <algorithm>
#include <limits>

namespace stowage::tests {

namespace {

/// Stands for text that no JSON value prints as.
constexpr const char* kMark = "\x01raw\x01";
constexpr const char* kMarkPrinted = "\"\\u0001raw\\u0001\"";

void collect(Json& node, std::vector<Json*>& nodes) {
  nodes.push_back(&node);
  if (!node.is_structured()) return;
  for (Json& child : node) collect(child, nodes);
}

/// A text that states a number, or several: another one.
std::string otherNumberText(const std::string& text, Random& random) {
  static const std::vector<std::string> kTexts = {"nan",
                                                  "inf",
                                                  "-inf",
                                                  "-1",
                                                  "0",
                                                  "1",
                                                  "9223372036854775807",
                                                  "9223372036854775808",
                                                  "1e999",
                                                  "1e308",
                                                  "-0.0",
                                                  "0x10",
                                                  " 1",
                                                  "1 ",
                                                  "1,",
                                                  "100000",
                                                  "5e-324"};
  const size_t digit = text.find_first_of("0123456789");
  if (random.chance(40)) return random.pick(kTexts);
  const size_t end = std::min(text.find_first_not_of("0123456789", digit), text.size());
  const std::string number =
      random.chance(60) ? std::to_string(random.between(0, 40)) : random.pick(kTexts);
  return text.substr(0, digit) + number + text.substr(end);
}

bool statesNumbers(const std::string& text) {
  return text.find_first_of("0123456789") != std::string::npos &&
         text.find_first_not_of("0123456789.,e+- []") == std::string::npos;
}

/// Large documents consist of their arrays: a member of an object is as likely as all items of one.
Json& pickNode(Json& document, Random& random) {
  if (random.chance(40)) {
    std::vector<Json*> nodes;
    collect(document, nodes);
    return *random.pick(nodes);
  }
  Json* node = &document;
  while (node->is_structured() && !node->empty() && !random.chance(8)) {
    auto child = node->begin();
    std::advance(child, random.between(0, static_cast<int64_t>(node->size()) - 1));
    node = &*child;
  }
  return *node;
}

std::string rawText(Random& random) {
  static const std::vector<std::string> kTexts = {"NaN",
                                                  "Infinity",
                                                  "-Infinity",
                                                  "1e999",
                                                  "-1e999",
                                                  "1e-999",
                                                  "-0",
                                                  "-0.0",
                                                  "0.1",
                                                  "00",
                                                  "18446744073709551615",
                                                  "18446744073709551616",
                                                  "-9223372036854775809",
                                                  "9223372036854775808",
                                                  "{\"a\":1,\"a\":2}",
                                                  "[1,]",
                                                  "nul",
                                                  "'x'",
                                                  "\"\\ud800\"",
                                                  "\"\\u0000\"",
                                                  "\"\xff\xfe\"",
                                                  "/* x */ 1",
                                                  "",
                                                  "0x10",
                                                  "123456789012345678901234567890"};
  if (random.chance(90)) return random.pick(kTexts);
  const auto depth = static_cast<size_t>(random.uneven(100, 100'000));
  return random.chance(50) ? std::string(depth, '[') + std::string(depth, ']')
                           : std::string(depth, '[');
}

Json otherKind(Random& random) {
  switch (random.between(0, 7)) {
    case 0:
      return nullptr;
    case 1:
      return true;
    case 2:
      return otherNumber(0, random);
    case 3:
      return 0.5;
    case 4:
      return "x";
    case 5:
      return Json::array();
    case 6:
      return Json::object();
    default:
      return Json::array({Json::array({1})});
  }
}

void changeObject(Json& object, Random& random, std::string& kind) {
  auto member = object.begin();
  std::advance(member, random.between(0, static_cast<int64_t>(object.size()) - 1));
  const std::string key = member.key();
  switch (random.between(0, 3)) {
    case 0:
      kind += "member-dropped ";
      object.erase(key);
      return;
    case 1: {
      kind += "member-renamed ";
      const Json value = *member;
      object.erase(key);
      object[random.chance(50) ? hostileText(random) : key + "_"] = value;
      return;
    }
    case 2: {
      kind += "members-swapped ";
      auto other = object.begin();
      std::advance(other, random.between(0, static_cast<int64_t>(object.size()) - 1));
      std::swap(*member, *other);
      return;
    }
    default:
      kind += "member-added ";
      object[hostileText(random)] = *member;
  }
}

void changeArray(Json& array, Random& random, std::string& kind) {
  const int64_t last = static_cast<int64_t>(array.size()) - 1;
  const auto a = static_cast<size_t>(random.between(0, last));
  const auto b = static_cast<size_t>(random.between(0, last));
  switch (random.between(0, 4)) {
    case 0:
      kind += "item-dropped ";
      array.erase(a);
      return;
    case 1:
      kind += "item-doubled ";
      array.insert(array.begin() + static_cast<ptrdiff_t>(b), Json(array[a]));
      return;
    case 2:
      kind += "items-swapped ";
      std::swap(array[a], array[b]);
      return;
    case 3:
      kind += "array-cut ";
      array.erase(array.begin() + static_cast<ptrdiff_t>(a), array.end());
      return;
    default: {
      kind += "item-repeated ";
      const Json item = array[a];
      for (int64_t i = random.uneven(1, 3000); i > 0; --i) array.push_back(item);
    }
  }
}

void changeLeaf(Json& leaf, Random& random, std::string& kind) {
  if (leaf.is_boolean()) {
    kind += "flag-flipped ";
    leaf = !leaf.get<bool>();
  } else if (leaf.is_number_float()) {
    kind += "number ";
    leaf = random.chance(50) ? leaf.get<double>() * -1e6 : 1e308;
  } else if (leaf.is_number()) {
    kind += "number ";
    leaf = otherNumber(leaf.get<int64_t>(), random);
  } else if (leaf.is_string()) {
    kind += "text ";
    std::string text = leaf.get<std::string>();
    if (statesNumbers(text) && random.chance(70)) {
      leaf = otherNumberText(text, random);
      return;
    }
    const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(text.size())));
    switch (random.between(0, 3)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text.insert(at, hostileText(random));
        break;
      case 2:
        text = hostileText(random);
        break;
      default:
        text.insert(at, 1, static_cast<char>('0' + random.between(0, 9)));
    }
    leaf = text;
  } else {
    kind += "empty-filled ";
    leaf = otherKind(random);
  }
}

}  // namespace

int64_t otherNumber(int64_t value, Random& random) {
  static const std::vector<int64_t> kEnds = {0,
                                             1,
                                             -1,
                                             2,
                                             7,
                                             63,
                                             64,
                                             511,
                                             512,
                                             4095,
                                             4096,
                                             INT32_MAX,
                                             int64_t{INT32_MAX} + 1,
                                             UINT32_MAX,
                                             int64_t{1} << 40,
                                             (int64_t{1} << 53) + 1,
                                             INT64_MAX / 4,
                                             INT64_MAX / 2,
                                             INT64_MAX - 511,
                                             INT64_MAX,
                                             INT64_MIN,
                                             INT64_MIN + 1,
                                             -512};
  const auto wide = static_cast<uint64_t>(value);
  switch (random.between(0, 6)) {
    case 0:
      return random.pick(kEnds);
    case 1:
      return static_cast<int64_t>(wide + 1);
    case 2:
      return static_cast<int64_t>(wide - 1);
    case 3:
      return static_cast<int64_t>(wide * 2);
    case 4:
      return value / 2;
    case 5:
      return static_cast<int64_t>(wide + static_cast<uint64_t>(random.between(-64, 64)) * 64);
    default:
      return random.between(0, 20);
  }
}

std::string hostileText(Random& random) {
  static const std::vector<std::string> kTexts = {"",
                                                  "../outside/stray",
                                                  "../outside/keep.txt",
                                                  "/tmp/stowage_stray",
                                                  "/dev/null",
                                                  "/proc/self/mem",
                                                  "/",
                                                  ".",
                                                  "..",
                                                  "-o",
                                                  "--help",
                                                  "a b",
                                                  "\x1b[2J\x1b]0;title\x07",
                                                  "\xc2\x9b"
                                                  "31m",
                                                  "\xe2\x80\xae"
                                                  "dets",
                                                  "line\nerror: another",
                                                  "\r\r\r",
                                                  "\xff\xfe\x80",
                                                  std::string("\0x", 2),
                                                  "%s%n%d",
                                                  "{}{:d}",
                                                  "\"quoted\"",
                                                  "*",
                                                  "float32",
                                                  "f64",
                                                  "cuda",
                                                  "aten.from_file.default",
                                                  std::string(300, 'n')};
  return random.chance(97) ? random.pick(kTexts) : std::string(200'000, 'y');
}

std::string mutateJson(const Json& document, Random& random, std::string& kind) {
  Json changed = document;
  std::string raw;
  bool hasRaw = false;
  const int64_t times = random.chance(75) ? 1 : random.between(2, 4);
  for (int64_t i = 0; i < times; ++i) {
    Json& node = pickNode(changed, random);
    if (random.chance(6) && !hasRaw) {
      kind += "raw ";
      raw = rawText(random);
      hasRaw = true;
      node = kMark;
    } else if (random.chance(6)) {
      kind += "other-kind ";
      node = otherKind(random);
    } else if (random.chance(8)) {
      kind += "from-elsewhere ";
      const Json other = pickNode(changed, random);
      pickNode(changed, random) = other;
    } else if (node.is_object() && !node.empty()) {
      changeObject(node, random, kind);
    } else if (node.is_array() && !node.empty()) {
      changeArray(node, random, kind);
    } else {
      changeLeaf(node, random, kind);
    }
  }
  std::string text = changed.dump(-1, ' ', false, Json::error_handler_t::ignore);
  const size_t at = text.find(kMarkPrinted);
  if (hasRaw && at != std::string::npos) {
    text.replace(at, std::string(kMarkPrinted).size(), raw);
  }
  return text;
}

}  // namespace stowage::tests
