// SPDX-License-Identifier: Apache-2.0
//
// What stands in a checkpoint beside the state: metadata of the files, and the generator's state.
#ifndef STOWAGE_RUNTIME_CHECKPOINT_CHECKPOINT_KEYS_H_
#define STOWAGE_RUNTIME_CHECKPOINT_CHECKPOINT_KEYS_H_

#include <array>
#include <cstdio>
#include <string>

namespace stowage::runtime {

inline constexpr const char* kGeneratorName = "generator.cpu";
inline constexpr const char* kCheckpointVersion = "1.0";
inline constexpr const char* kStepsKey = "stowage.steps";
inline constexpr const char* kPositionKey = "stowage.data_position";
inline constexpr const char* kPlanKey = "stowage.plan";
inline constexpr const char* kRatesKey = "stowage.learning_rates";
inline constexpr double kMostRate = 1e9;  // as of a rate that a user gives
inline constexpr const char* kNotePrefix = "stowage.note.";

/// Reads back as the same number.
inline std::string exactText(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_CHECKPOINT_CHECKPOINT_KEYS_H_
