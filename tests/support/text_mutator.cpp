// SPDX-License-Identifier: Apache-2.0
#include "tests/support/text_mutator.h"

#include <algorithm>
#include <array>

namespace stowage::tests {

namespace {

void dropLine(std::string& text, size_t at) {
  const size_t begin = text.rfind('\n', at);
  const size_t end = text.find('\n', at + 1);
  if (begin != std::string::npos && end != std::string::npos) text.erase(begin, end - begin);
}

}  // namespace

std::string TextMutator::mutate(size_t most) {
  std::string mutant = text_;
  const size_t edits = 1 + below(3);
  for (size_t i = 0; i < edits && !mutant.empty(); ++i) {
    edit(mutant, below(std::min(most, mutant.size())));
  }
  return mutant;
}

void TextMutator::edit(std::string& text, size_t at) {
  switch (below(7)) {
    case 0:
      text[at] = static_cast<char>(below(256));
      return;
    case 1:
      text.erase(at, 1 + below(8));
      return;
    case 2:
      text.insert(at, text.substr(at, 1 + below(30)));
      return;
    case 3:
      text.resize(at);
      return;
    case 4:
      return replaceNumber(text, at);
    case 5:
      return dropLine(text, at);
    default:
      text[at] = "{}[],:\"0-e."[below(11)];
  }
}

void TextMutator::replaceNumber(std::string& text, size_t at) {
  static constexpr std::array<const char*, 8> kNumbers = {
      "0", "-1", "2147483647", "9223372036854775807", "18446744073709551616", "1e308", "0.5", "7"};
  const size_t begin = text.find_first_of("0123456789", at);
  if (begin == std::string::npos) return;
  const size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
  text.replace(begin, end - begin, kNumbers[below(kNumbers.size())]);
}

}  // namespace stowage::tests
