// SPDX-License-Identifier: Apache-2.0
//
// The parser on 10,000 damaged texts from seeds: the same check that the libFuzzer program makes,
// in every build. Damage is mostly to the structure (lines, words, numbers), since damaged bytes
// alone hardly get past the lexer.

#include <gtest/gtest.h>

#include <vector>

#include "ir/schedule/fingerprint.h"
#include "ir/text/printer.h"
#include "tests/fuzz/parser_fuzz.h"
#include "tests/support/keep_all_schedule.h"
#include "tests/support/random.h"
#include "tests/support/random_graph.h"

namespace stowage::tests {
namespace {

constexpr int kSeeds = 100;
constexpr int kMutationsPerSeed = 100;

std::string originalText(uint64_t seed) {
  const ir::Graph graph =
      seed % 2 == 0 ? makeTinyGraph(seed) : makeRandomStep(seed, {.maxLayers = 2});
  return toText(graph, makeKeepAllSchedule(graph, makeTestTarget()));
}

std::string randomWord(Random& random) {
  static const std::vector<std::string> kWords = {"graph",
                                                  "schedule",
                                                  "view",
                                                  "input",
                                                  "frozen",
                                                  "gradient",
                                                  "persistent",
                                                  "transient",
                                                  "output",
                                                  "host",
                                                  "storage=",
                                                  "value=",
                                                  "bytes=",
                                                  "of",
                                                  ":",
                                                  "=",
                                                  "[",
                                                  "]",
                                                  "(",
                                                  ")",
                                                  "{",
                                                  "}",
                                                  ",",
                                                  "->",
                                                  "+",
                                                  "@-",
                                                  "inout",
                                                  "out",
                                                  "none",
                                                  "true",
                                                  "inf",
                                                  "nan",
                                                  "-inf",
                                                  "complex(",
                                                  "wrapped(f64 ",
                                                  "dtype(",
                                                  "values[]",
                                                  "numbers[]",
                                                  "%",
                                                  "#",
                                                  "@",
                                                  "\"",
                                                  "\\",
                                                  "_",
                                                  "\n",
                                                  "//",
                                                  "forward \"x\":",
                                                  "f32[",
                                                  "strides=[",
                                                  "offset=",
                                                  "run",
                                                  "copy",
                                                  "recompute",
                                                  "wait [",
                                                  "prev [",
                                                  "temp",
                                                  "rng",
                                                  "takes",
                                                  "r0",
                                                  "c0",
                                                  "n0",
                                                  "%v0",
                                                  "aten.relu.default(",
                                                  "0",
                                                  "-1",
                                                  "1",
                                                  "2",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "18446744073709551616",
                                                  "4294967296",
                                                  "1e308",
                                                  "1e999",
                                                  "0.5",
                                                  std::string(1, '\0'),
                                                  "\xff\xfe"};
  return random.pick(kWords);
}

// A position at which a word or line begins or ends, so that damage meets the grammar.
size_t tokenEdge(Random& random, const std::string& text) {
  const auto start = static_cast<size_t>(random.between(0, static_cast<int64_t>(text.size())));
  const size_t found = text.find_first_of(" \n,()[]=:", start);
  return found == std::string::npos || random.chance(10) ? start : found;
}

void mutate(Random& random, std::string& text) {
  const size_t a = tokenEdge(random, text);
  const size_t b = tokenEdge(random, text);
  const size_t from = std::min(a, b);
  const size_t length = std::min<size_t>(std::max(a, b) - from, 200);
  switch (random.between(0, 6)) {
    case 0:
      text.insert(a, randomWord(random));
      return;
    case 1:
      text.erase(from, length);
      return;
    case 2:
      text.insert(b, text.substr(from, length));
      return;
    case 3:
      text.replace(from, std::min<size_t>(length, 8), randomWord(random));
      return;
    case 4:
      if (a < text.size()) text[a] = static_cast<char>(random.bits());
      return;
    case 5: {  // one number becomes another
      const size_t digit = text.find_first_of("0123456789", a);
      if (digit == std::string::npos) return;
      const size_t end = text.find_first_not_of("0123456789", digit);
      const size_t count = end == std::string::npos ? text.size() - digit : end - digit;
      text.replace(digit, count, std::to_string(random.between(0, 9)));
      return;
    }
    default:
      if (random.chance(10)) text.resize(a);
  }
}

TEST(ParserFuzz, DamagedTextsAreRefusedWithAPlaceOrReadBack) {
  int accepted = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string original = originalText(seed);
    ASSERT_EQ(checkParserOn(original).complaint, "") << "seed " << seed;
    ASSERT_TRUE(checkParserOn(original).accepted) << "seed " << seed;
    Random random(seed);
    for (int i = 0; i < kMutationsPerSeed; ++i) {
      std::string text = original;
      const int64_t times = random.between(1, 3);
      for (int64_t k = 0; k < times; ++k) mutate(random, text);
      const ParseOutcome outcome = checkParserOn(text);
      ASSERT_EQ(outcome.complaint, "") << "seed " << seed << ", mutation " << i << "\n" << text;
      if (outcome.accepted) ++accepted;
    }
  }
  // Both answers occur often, or this tests one of them.
  EXPECT_GE(accepted, kSeeds * kMutationsPerSeed / 50);
  EXPECT_LE(accepted, kSeeds * kMutationsPerSeed * 3 / 4);
  RecordProperty("accepted", accepted);
}

// Every prefix of one text, so that it ends at every place of the grammar.
TEST(ParserFuzz, TextsThatEndAnywhereAreRefused) {
  const std::string text = originalText(3);
  for (size_t length = 0; length < text.size(); ++length) {
    const ParseOutcome outcome = checkParserOn(llvm::StringRef(text).take_front(length));
    ASSERT_EQ(outcome.complaint, "") << length;
  }
}

// Sizes in the text must not become sizes in memory, and repetition must not become recursion.
TEST(ParserFuzz, HostileSizesAreCheap) {
  const std::string head = "graph @g version=1 {\n";
  EXPECT_EQ(checkParserOn(head + std::string(1'000'000, '[')).complaint, "");
  EXPECT_EQ(checkParserOn(head + "  aten.a.b(" + std::string(1'000'000, '[') + "\n").complaint, "");
  EXPECT_EQ(checkParserOn(head + "  input %x value=1073741823 storage=1073741823 : "
                                 "f32[9000000000000000000]\n}\n")
                .complaint,
            "");
  EXPECT_EQ(checkParserOn("graph @" + std::string(1'000'000, 'g') + " version=2 {").complaint, "");
  std::string many = head + "  input %x : f32[4]\n  aten.a.b(";
  for (int i = 0; i < 100'000; ++i) many += "%x, ";
  EXPECT_TRUE(checkParserOn(many + "%x)\n}\n").accepted);
  std::string writes = head;
  std::string list;
  for (int i = 0; i < 20'000; ++i) {
    const std::string name = "%p" + std::to_string(i);
    writes += "  parameter " + name + " : f32[]\n";
    list += (i == 0 ? "inout " : ", inout ") + name;
  }
  EXPECT_TRUE(
      checkParserOn(writes + "  aten._foreach_zero_.default([" + list + "])\n}\n").accepted);
}

}  // namespace
}  // namespace stowage::tests
