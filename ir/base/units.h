// SPDX-License-Identifier: Apache-2.0
//
// Quantities as types: Bytes, Nanoseconds and BytesPerSecond cannot be mixed up, and their sums and
// products are checked for overflow (a wrapped size would be a silent broken promise).
// MiB means 2^20 everywhere. Printing a size for people happens in `formatBytes` alone.
#ifndef STOWAGE_IR_BASE_UNITS_H_
#define STOWAGE_IR_BASE_UNITS_H_

#include <cassert>
#include <compare>
#include <cstdint>
#include <string>

namespace stowage {

namespace detail {
/// An integer quantity with a unit. Arithmetic asserts on overflow.
template <typename Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(int64_t value) : value_(value) {}
  constexpr int64_t value() const { return value_; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    int64_t sum = 0;
    [[maybe_unused]] const bool overflow = __builtin_add_overflow(a.value_, b.value_, &sum);
    assert(!overflow && "quantity overflow in addition");
    return Quantity(sum);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    int64_t difference = 0;
    [[maybe_unused]] const bool overflow = __builtin_sub_overflow(a.value_, b.value_, &difference);
    assert(!overflow && "quantity overflow in subtraction");
    return Quantity(difference);
  }
  friend constexpr Quantity operator*(Quantity a, int64_t factor) {
    int64_t product = 0;
    [[maybe_unused]] const bool overflow = __builtin_mul_overflow(a.value_, factor, &product);
    assert(!overflow && "quantity overflow in multiplication");
    return Quantity(product);
  }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }

 private:
  int64_t value_ = 0;
};
}  // namespace detail

using Bytes = detail::Quantity<struct BytesTag>;
using Nanoseconds = detail::Quantity<struct NanosecondsTag>;
using BytesPerSecond = detail::Quantity<struct BytesPerSecondTag>;

/// Smallest multiple of `alignment` (a power of two) that is not less than `bytes`.
constexpr Bytes roundUp(Bytes bytes, int64_t alignment) {
  assert(alignment > 0 && (alignment & (alignment - 1)) == 0 && "alignment must be a power of two");
  return Bytes((bytes.value() + alignment - 1) & ~(alignment - 1));
}

/// The most that one command is taken to last, 1000 s: sums over a step then stay far from
/// overflow.
inline constexpr Nanoseconds kLongestCommand{1'000'000'000'000};

/// Time to move `bytes` at `rate`, rounded up to a whole nanosecond, at most kLongestCommand.
/// `rate` must be positive.
constexpr Nanoseconds transferTime(Bytes bytes, BytesPerSecond rate) {
  assert(rate.value() > 0 && "transfer at no bandwidth");
  const __int128 scaled = static_cast<__int128>(bytes.value()) * 1'000'000'000;
  const __int128 time = (scaled + rate.value() - 1) / rate.value();
  return time < kLongestCommand.value() ? Nanoseconds(static_cast<int64_t>(time)) : kLongestCommand;
}

/// "1.50 GiB", "512 B": for people. Files hold integers.
std::string formatBytes(Bytes bytes);
/// "4.10 s", "812 us": for people. Files hold integers.
std::string formatDuration(Nanoseconds duration);

namespace literals {
// NOLINTBEGIN(google-runtime-int): literal operators must take unsigned long long.
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(static_cast<int64_t>(n)); }
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes(static_cast<int64_t>(n)) * (int64_t{1} << 10);
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes(static_cast<int64_t>(n)) * (int64_t{1} << 20);
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes(static_cast<int64_t>(n)) * (int64_t{1} << 30);
}
constexpr Nanoseconds operator""_ns(unsigned long long n) {
  return Nanoseconds(static_cast<int64_t>(n));
}
constexpr Nanoseconds operator""_us(unsigned long long n) {
  return Nanoseconds(static_cast<int64_t>(n)) * 1000;
}
constexpr Nanoseconds operator""_ms(unsigned long long n) {
  return Nanoseconds(static_cast<int64_t>(n)) * 1'000'000;
}
// NOLINTEND(google-runtime-int)
}  // namespace literals

}  // namespace stowage

#endif  // STOWAGE_IR_BASE_UNITS_H_
