// SPDX-License-Identifier: Apache-2.0
//
// Ten thousand damaged plan files, from a printed seed: bytes changed, dropped and doubled, numbers
// made extreme, lines swapped, the end cut off. Each must be an error with a place or a plan.

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>

#include "tests/support/sample_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace stowage::tests {
namespace {

constexpr uint32_t kSeed = 20250611;
constexpr int kMutants = 10000;

class Mutator {
 public:
  explicit Mutator(std::string text) : text_(std::move(text)) {}

  std::string mutate() {
    std::string mutant = text_;
    const size_t edits = 1 + below(3);
    for (size_t i = 0; i < edits && !mutant.empty(); ++i) edit(mutant);
    return mutant;
  }

 private:
  size_t below(size_t limit) { return random_() % limit; }

  void edit(std::string& text) {
    const size_t at = below(text.size());
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

  void replaceNumber(std::string& text, size_t at) {
    static constexpr std::array<const char*, 8> kNumbers = {
        "0",     "-1",  "2147483647", "9223372036854775807", "18446744073709551616",
        "1e308", "0.5", "7"};
    const size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    const size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    text.replace(begin, end - begin, kNumbers[below(kNumbers.size())]);
  }

  static void dropLine(std::string& text, size_t at) {
    const size_t begin = text.rfind('\n', at);
    const size_t end = text.find('\n', at + 1);
    if (begin != std::string::npos && end != std::string::npos) text.erase(begin, end - begin);
  }

  std::string text_;
  std::mt19937 random_{kSeed};
};

TEST(PlanJsonMutation, EveryDamagedFileIsAnErrorOrAPlan) {
  RecordProperty("seed", static_cast<int>(kSeed));
  Mutator mutator(writeToText(makeSamplePlan()));
  for (int i = 0; i < kMutants; ++i) {
    const std::string mutant = mutator.mutate();
    // Aborts, with the mutant in the core, when a promise is broken.
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(mutant.data()), mutant.size());
  }
}

}  // namespace
}  // namespace stowage::tests
