// SPDX-License-Identifier: Apache-2.0
//
// Two sizes for one message: readable, and in exact bytes where both would read the same.
#ifndef STOWAGE_IR_BASE_FORMAT_APART_H_
#define STOWAGE_IR_BASE_FORMAT_APART_H_

#include <string>
#include <utility>

#include "ir/base/units.h"

namespace stowage {

std::pair<std::string, std::string> formatApart(Bytes a, Bytes b);

}  // namespace stowage

#endif  // STOWAGE_IR_BASE_FORMAT_APART_H_
