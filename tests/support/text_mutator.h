// SPDX-License-Identifier: Apache-2.0
//
// Damages a file that holds text, as disks, editors and people do: bytes changed, dropped and
// doubled, numbers made extreme, lines dropped, the end cut off. One to three of them at once,
// drawn from a seed.
#ifndef STOWAGE_TESTS_SUPPORT_TEXT_MUTATOR_H_
#define STOWAGE_TESTS_SUPPORT_TEXT_MUTATOR_H_

#include <cstdint>
#include <random>
#include <string>

namespace stowage::tests {

class TextMutator {
 public:
  TextMutator(std::string text, uint32_t seed) : text_(std::move(text)), random_(seed) {}

  /// The text, damaged anew. Damage is in its first `most` bytes.
  std::string mutate(size_t most = SIZE_MAX);

 private:
  size_t below(size_t limit) { return random_() % limit; }
  void edit(std::string& text, size_t at);
  void replaceNumber(std::string& text, size_t at);

  std::string text_;
  std::mt19937 random_;
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_TEXT_MUTATOR_H_
