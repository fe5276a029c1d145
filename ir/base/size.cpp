// SPDX-License-Identifier: Apache-2.0
#include "ir/base/size.h"

#include <algorithm>
#include <cmath>

namespace stowage {

Bytes Size::resolve(Wholes wholes) const {
  if (withOutside) {
    Size all = *this;
    all.withOutside = false;
    return all.resolve(wholes) - wholes.outside;
  }
  if (of == Of::kAbsolute) return bytes;
  const Bytes whole = of == Of::kDevice ? wholes.device : wholes.peak;
  return Bytes(
      static_cast<int64_t>(static_cast<__int128>(whole.value()) * partPerMillion / 1'000'000));
}

Size percentOfPeak(double percent) {
  constexpr double kMost = 1e12;  // so that every share fits its type
  Size size;
  size.of = Size::Of::kPeak;
  if (std::isnan(percent)) return size;
  size.partPerMillion = std::llround(std::clamp(percent, -kMost, kMost) * 10'000);
  return size;
}

}  // namespace stowage
