// SPDX-License-Identifier: Apache-2.0
//
// A small random generator with the same numbers on every machine (the distributions of the
// standard library differ between implementations), so that a printed seed repeats a failure
// anywhere.
#ifndef STOWAGE_TESTS_SUPPORT_RANDOM_H_
#define STOWAGE_TESTS_SUPPORT_RANDOM_H_

#include <cassert>
#include <cstddef>
#include <cstdint>

namespace stowage::tests {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  /// 64 random bits (splitmix64).
  uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  /// Both ends included. The bias of the remainder is of no interest here.
  int64_t between(int64_t low, int64_t high) {
    assert(low <= high && "an empty range");
    const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
    return low + static_cast<int64_t>(span == 0 ? bits() : bits() % span);
  }
  bool chance(int percent) { return between(0, 99) < percent; }
  /// Low numbers as likely as high ones on a logarithmic scale: uneven sizes. `low` is positive.
  int64_t uneven(int64_t low, int64_t high) {
    int64_t top = low;
    while (top < high && chance(85)) top *= 2;
    return between(low, top < high ? top : high);
  }
  template <typename Range>
  const auto& pick(const Range& range) {
    return *(range.begin() + between(0, static_cast<int64_t>(range.size()) - 1));
  }

 private:
  uint64_t state_;
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_RANDOM_H_
