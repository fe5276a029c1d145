// SPDX-License-Identifier: Apache-2.0
//
// Uses the installed package from outside: prints a size through the library and checks the text.

#include <cstdio>

#include "ir/base/units.h"

int main() {
  using namespace stowage::literals;
  const std::string text = stowage::formatBytes(3_MiB);
  std::printf("%s\n", text.c_str());
  return text == "3.00 MiB" ? 0 : 1;
}
