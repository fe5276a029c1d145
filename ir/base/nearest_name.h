// SPDX-License-Identifier: Apache-2.0
//
// "Did you mean": the name nearest to what was typed.
#ifndef STOWAGE_IR_BASE_NEAREST_NAME_H_
#define STOWAGE_IR_BASE_NEAREST_NAME_H_

#include <string>
#include <vector>

namespace stowage::ir {

/// The name with the fewest edits from `typed`; the first of `names` among equals; "" if none is
/// near (more than a third of the letters differ).
std::string nearestName(const std::string& typed, const std::vector<std::string>& names);

/// "unknown policy 'stream-state', did you mean 'stream-states'?; expected one of keep-all, ...".
/// `form`: of what is expected, "one of".
std::string describeUnknown(const std::string& kind, const std::string& typed,
                            const std::string& form, const std::vector<std::string>& names);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_BASE_NEAREST_NAME_H_
