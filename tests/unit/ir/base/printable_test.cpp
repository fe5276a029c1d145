// SPDX-License-Identifier: Apache-2.0
//
// Foreign text on its way to a terminal: nothing that it would obey, nothing longer than is read.
#include "ir/base/printable.h"

#include <gtest/gtest.h>

#include "ir/base/error.h"
#include "ir/graph/graph.h"

namespace stowage::ir {
namespace {

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("h.0.attn 'x' \"y\""), "h.0.attn 'x' \"y\"");
  EXPECT_EQ(printable("a\033[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable("a\nerror: b\r\t\x7f"), "a\\x0aerror: b\\x0d\\x09\\x7f");
  EXPECT_EQ(printable(llvm::StringRef("\0a", 2)), "\\x00a");
  // The same as characters of Unicode: a control sequence, an override of direction, a line's end.
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J");
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");
}

TEST(Printable, KeepsUtf8AndNothingElse) {
  for (const char* text : {"Gr\xc3\xb6\xc3\x9f"
                           "e",
                           "\xe2\x80\xa6", "\xf0\x9f\x9a\xa2", "\xc2\xa0"}) {
    EXPECT_EQ(printable(text), text);
  }
  // A continuation alone, a character cut off, longer than needed, half of a pair, beyond the last.
  EXPECT_EQ(printable("\x80"), "\\x80");
  EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80");
  EXPECT_EQ(printable("\xe2\x80z"), "\\xe2\\x80z");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");
  EXPECT_EQ(printable("\xe0\x9f\xbf"), "\\xe0\\x9f\\xbf");
  EXPECT_EQ(printable("\xf0\x8f\xbf\xbf"), "\\xf0\\x8f\\xbf\\xbf");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
}

TEST(Printable, KeepsBeginAndEndOfLongTexts) {
  EXPECT_EQ(shortened("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(shortened("abcdefghi", 8), "abcdef [1 bytes left out] hi");
  const std::string text = "found '" + std::string(5'000'000, 'x') + "', expected less";
  const std::string shown = shortened(text);
  EXPECT_LT(shown.size(), kLongestShown + 100);
  EXPECT_EQ(shown.find("found 'xxx"), 0U);
  EXPECT_NE(shown.find("xxx', expected less"), std::string::npos);
  // A character is not cut in two.
  std::string wide;
  for (int i = 0; i < 3000; ++i) wide += "\xe2\x82\xac";
  for (const size_t more : {0, 1, 2}) {
    EXPECT_EQ(printable(shortened(std::string(more, 'a') + wide)).find('\\'), std::string::npos);
  }
}

TEST(Printable, MessagesAreLinesOfTheirOwn) {
  PlanError error(ErrorCode::kParse, "found '\033]0;owned\a', expected\nerror: forged");
  error.at({.file = "a\033[2Jb", .line = 3}).note("x\n  y");
  EXPECT_EQ(describe(makeError(std::move(error))),
            "a\\x1b[2Jb:3: found '\\x1b]0;owned\\x07', expected\\x0aerror: forged\n  x\\x0a  y");
}

TEST(Printable, MessagesHaveABound) {
  PlanError error(ErrorCode::kPlanMismatch, std::string(3'000'000, 'm'));
  for (int i = 0; i < 200'000; ++i) error.note("extra: '" + std::to_string(i) + "'");
  const std::string text = describe(makeError(std::move(error)));
  EXPECT_LT(text.size(), 10'000U);
  EXPECT_NE(text.find("extra: '49'"), std::string::npos);
  EXPECT_EQ(text.find("extra: '50'"), std::string::npos);
  EXPECT_TRUE(llvm::StringRef(text).endswith("\n  and 199950 more")) << text.substr(9000);
}

}  // namespace
}  // namespace stowage::ir
