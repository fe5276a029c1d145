// SPDX-License-Identifier: Apache-2.0
//
// Changes a JSON document and keeps it JSON, mostly: a value becomes another of its kind, of
// another kind or one from elsewhere in the document; members are dropped, renamed and doubled,
// items moved; and what a JSON library's types do not hold: numbers beyond all ranges, NaN, the
// same key twice, arrays in arrays by the ten thousand.
#ifndef STOWAGE_TESTS_FUZZ_JSON_MUTATOR_H_
#define STOWAGE_TESTS_FUZZ_JSON_MUTATOR_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace stowage::tests {

using Json = nlohmann::ordered_json;

/// The changed text of `document`; what was done is appended to `kind`.
std::string mutateJson(const Json& document, Random& random, std::string& kind);

/// A number close to `value` or at the end of a range.
int64_t otherNumber(int64_t value, Random& random);
/// Names that harm where they are trusted: paths, terminal sequences, bytes that are no UTF-8.
std::string hostileText(Random& random);

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_FUZZ_JSON_MUTATOR_H_
