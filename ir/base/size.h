// SPDX-License-Identifier: Apache-2.0
//
// A size that somebody asks for: bytes, or a share of a size that is known elsewhere (the unplanned
// peak of a step, a device's memory). Shares are whole millionths, so that 33.3 % is exact. Written
// as text on the command line (tools/cli/budget_flag.h), as a value in C++.
#ifndef STOWAGE_IR_BASE_SIZE_H_
#define STOWAGE_IR_BASE_SIZE_H_

#include <cstdint>

#include "ir/base/units.h"

namespace stowage {

struct Size {
  enum class Of : uint8_t { kAbsolute, kDevice, kPeak };
  Of of = Of::kAbsolute;
  Bytes bytes;                 // kAbsolute
  int64_t partPerMillion = 0;  // otherwise: 50% is 500000
  bool withOutside = false;    // what lies beside the arena is part of the size

  Size() = default;
  Size(Bytes absolute) : bytes(absolute) {}  // NOLINT(google-explicit-constructor)

  struct Wholes {
    Bytes device;
    Bytes peak;
    Bytes outside;
  };
  /// The arena's size in bytes, rounded down; negative when nothing is left for it.
  Bytes resolve(Wholes wholes) const;
};

/// A share of the unplanned peak: the bytes that are alive at once when nothing is moved or
/// recomputed (`--budget 60%peak` on the command line). An invalid share (not a number, 0 or less,
/// beyond all memory) is kept, and planning refuses it.
Size percentOfPeak(double percent);

}  // namespace stowage

#endif  // STOWAGE_IR_BASE_SIZE_H_
