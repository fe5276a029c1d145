// SPDX-License-Identifier: Apache-2.0
//
// Changes the text of a captured step, statement by statement, so that most results still parse:
// sizes, element types, strides and offsets; roles and markers of storages; the op of a call, its
// arguments, what it reads and writes (`in`, `out`, `inout`); statements dropped, doubled and
// moved; names, step scalars, the header. The line with the checksum goes, as its own message
// advises.
#ifndef STOWAGE_TESTS_FUZZ_STEP_MUTATOR_H_
#define STOWAGE_TESTS_FUZZ_STEP_MUTATOR_H_

#include <string>
#include <vector>

#include "tests/support/random.h"

namespace stowage::tests {

/// The ops called in `steps`, with as many arguments as each call has: what one may be swapped for.
struct KnownCall {
  std::string op;
  size_t arguments = 0;
};
std::vector<KnownCall> findCalls(const std::vector<std::string>& steps);

/// What was done is appended to `kind`.
std::string mutateStep(const std::string& step, const std::vector<KnownCall>& calls, Random& random,
                       std::string& kind);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_FUZZ_STEP_MUTATOR_H_
