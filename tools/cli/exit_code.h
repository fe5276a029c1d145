// SPDX-License-Identifier: Apache-2.0
//
// What a program's exit code says, the same for every verb: 0 yes, 1 a negative answer (nothing
// fits, violations found), 2 wrong usage, 3 a bad input file, 4 the environment, 70 our bug. After
// a signal that asked to stop: 128 and its number, as shells say it.
#ifndef STOWAGE_TOOLS_CLI_EXIT_CODE_H_
#define STOWAGE_TOOLS_CLI_EXIT_CODE_H_

#include "ir/base/error.h"

namespace stowage::tools {

inline constexpr int kExitYes = 0;
inline constexpr int kExitNo = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitBadInput = 3;
inline constexpr int kExitEnvironment = 4;
inline constexpr int kExitInternal = 70;
inline constexpr int kExitStopped = 128;  // and the signal's number

constexpr int exitCodeFor(ir::ErrorCode code) {
  switch (code) {
    case ir::ErrorCode::kInfeasible:
    case ir::ErrorCode::kViolation:
      return kExitNo;
    case ir::ErrorCode::kInvalidArgument:
      return kExitUsage;
    case ir::ErrorCode::kParse:
    case ir::ErrorCode::kInvalidIr:
    case ir::ErrorCode::kPlanMismatch:
    case ir::ErrorCode::kUnsupported:
    case ir::ErrorCode::kIo:
      return kExitBadInput;
    case ir::ErrorCode::kOutOfDeviceMemory:
    case ir::ErrorCode::kCuda:
    case ir::ErrorCode::kEnvironment:
      return kExitEnvironment;
    case ir::ErrorCode::kTorch:
    case ir::ErrorCode::kInternal:
      return kExitInternal;
  }
  return kExitInternal;
}

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_CLI_EXIT_CODE_H_
