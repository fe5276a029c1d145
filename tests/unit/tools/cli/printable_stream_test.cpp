// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/printable_stream.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/base/printable.h"

namespace stowage::tools {
namespace {

std::string throughStream(const std::string& text) {
  std::string shown;
  llvm::raw_string_ostream to(shown);
  PrintableStream(to) << text;
  return to.str();
}

TEST(PrintableStream, EscapesAllButNewlines) {
  EXPECT_EQ(throughStream("fits       3 MiB\nmoves\n"), "fits       3 MiB\nmoves\n");
  EXPECT_EQ(throughStream("a\033[31m\xff\tb\n\nc"), "a\\x1b[31m\\xff\\x09b\n\nc");
}

TEST(PrintableStream, CutsLongLines) {
  const std::string shown = throughStream("a" + std::string(5'000'000, 'x') + "\nnext\n");
  EXPECT_EQ(shown, "a" + std::string(ir::kLongestShown - 1, 'x') + " [more left out]\nnext\n");
  // In parts, and not within a character.
  std::string wide;
  for (int i = 0; i < 3000; ++i) wide += "\xe2\x82\xac";
  const std::string cut = throughStream(wide + "\n");
  EXPECT_EQ(ir::printable(cut).find("\\xe2"), std::string::npos);
  std::string parts;
  llvm::raw_string_ostream to(parts);
  PrintableStream stream(to);
  for (int i = 0; i < 5000; ++i) stream << 'y';
  stream << "\nz\n";
  EXPECT_EQ(to.str(), std::string(ir::kLongestShown, 'y') + " [more left out]\nz\n");
}

}  // namespace
}  // namespace stowage::tools
