// SPDX-License-Identifier: Apache-2.0
//
// A case in the text form, changed in a few places, and the rules that the verifier says it breaks.
#ifndef STOWAGE_TESTS_UNIT_IR_VERIFY_CHECKED_CASE_H_
#define STOWAGE_TESTS_UNIT_IR_VERIFY_CHECKED_CASE_H_

#include <optional>
#include <string>
#include <vector>

#include "ir/text/parser.h"
#include "ir/verify/verify.h"

namespace stowage::tests {

/// Text to replace in a case; `from` must be there once.
struct Patch {
  std::string from;
  std::string to;
};
using Patches = std::vector<Patch>;

/// A case as read, with all that the verifier is given besides: kernels of 10 ns, links that cost
/// nothing, alignment 64, one reserved workspace of 64 bytes, the arena as the budget.
struct CheckedCase {
  ir::Module module;
  ir::Target target;
  ir::NodeCosts costs;
  Bytes budget;
  std::optional<Bytes> hostLimit = std::nullopt;

  ir::VerifyInput input() const {
    return {.graph = module.graph,
            .schedule = *module.schedule,
            .target = target,
            .costs = &costs,
            .budget = budget,
            .hostLimit = hostLimit};
  }
};

/// Fails the running test when `text` does not parse or a patch does not apply.
CheckedCase read(std::string text, const Patches& patches = {});

/// "V7 V10": the rules broken, then every message when there is more than one.
std::string rulesOf(const ir::VerifyInput& input);
std::string rulesOf(const char* text, const Patches& patches = {});

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_UNIT_IR_VERIFY_CHECKED_CASE_H_
