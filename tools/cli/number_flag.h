// SPDX-License-Identifier: Apache-2.0
//
// Numbers on the command line that CLI11's own checks let through: it takes those beyond its type
// for others, and its ranges do not refuse what is no number.
#ifndef STOWAGE_TOOLS_CLI_NUMBER_FLAG_H_
#define STOWAGE_TOOLS_CLI_NUMBER_FLAG_H_

#include <string>

namespace stowage::tools {

/// "" for a whole number from 0 to 2^63 - 1; else what was found and expected.
std::string describeBadSeed(const std::string& text);
/// The same for a learning rate: a number from 0 to 1e9.
std::string describeBadRate(const std::string& text);
/// The same for a time: a number of seconds above 0.
std::string describeBadSeconds(const std::string& text);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_CLI_NUMBER_FLAG_H_
